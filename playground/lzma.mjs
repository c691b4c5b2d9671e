// Unpacks what `xz --format=lzma` packed, with the length in its head (LZMA specification, I. Pavlov).
// Of a WebAssembly module that leaves a quarter less than gzip, whose matches reach back 32 KB only.
const half = 1024;  // of 2048: the chance of a bit before anything is known
const chances = (count) => new Uint16Array(count).fill(half);

export function unpacked(packed) {
  const [low, positionBits] = [packed[0] % 9, Math.floor(packed[0] / 45)];
  const literalPositionBits = Math.floor(packed[0] / 9) % 5;
  const out = new Uint8Array(new DataView(packed.buffer, packed.byteOffset).getUint32(5, true));
  let at = 14;  // behind the head and a zero
  let range = 0xffffffff;
  let code = 0;
  const shift = () => { code = ((code << 8) | packed[at++]) >>> 0; };
  for (let i = 0; i < 4; ++i) shift();

  const normalise = () => {
    if (range >= 0x1000000) return;
    range = (range << 8) >>> 0;
    shift();
  };
  const bit = (table, i) => {
    const chance = table[i];
    const bound = (range >>> 11) * chance;
    const one = code >= bound;
    if (one) {
      range -= bound;
      code -= bound;
      table[i] = chance - (chance >>> 5);
    } else {
      range = bound;
      table[i] = chance + ((2048 - chance) >>> 5);
    }
    normalise();
    return one ? 1 : 0;
  };
  const tree = (table, from, bits) => {
    let node = 1;
    for (let i = 0; i < bits; ++i) node = (node << 1) | bit(table, from + node);
    return node - (1 << bits);
  };
  const reversed = (table, from, bits) => {
    let [node, value] = [1, 0];
    for (let i = 0; i < bits; ++i) {
      const next = bit(table, from + node);
      node = (node << 1) | next;
      value |= next << i;
    }
    return value;
  };
  const plain = (bits) => {
    let value = 0;
    for (let i = 0; i < bits; ++i) {
      range >>>= 1;
      const one = code >= range;
      if (one) code -= range;
      value = (value << 1) | (one ? 1 : 0);
      normalise();
    }
    return value;
  };

  const lengths = () => ({ choice: chances(2), short: chances(16 << 3), middle: chances(16 << 3), long: chances(256) });
  const length = (table, place) => {
    if (bit(table.choice, 0) === 0) return 2 + tree(table.short, place << 3, 3);
    return bit(table.choice, 1) === 0 ? 10 + tree(table.middle, place << 3, 3) : 18 + tree(table.long, 0, 8);
  };
  const [matchLengths, repeatLengths] = [lengths(), lengths()];
  const literals = chances(0x300 << (low + literalPositionBits));
  const [isMatch, isLong, isRepeat, isOther, isThird, isFourth] = [192, 192, 12, 12, 12, 12].map(chances);
  const [slots, distances, aligned] = [4 << 6, 115, 16].map(chances);

  const distance = (count) => {
    const slot = tree(slots, Math.min(count - 2, 3) << 6, 6);
    if (slot < 4) return slot;
    const bits = (slot >> 1) - 1;
    const base = (2 | (slot & 1)) << bits;
    if (slot < 14) return base + reversed(distances, base - slot, bits);
    return base + (plain(bits - 4) << 4) + reversed(aligned, 0, 4);
  };

  let state = 0;  // what came last: literals below 7
  const last = [0, 0, 0, 0];  // distances, less one
  for (let to = 0; to < out.length;) {
    const place = to & ((1 << positionBits) - 1);
    if (bit(isMatch, (state << 4) + place) === 0) {
      const before = to > 0 ? out[to - 1] : 0;
      const from = 0x300 * (((to & ((1 << literalPositionBits) - 1)) << low) + (before >> (8 - low)));
      let node = 1;
      if (state >= 7) {  // after a match the byte that would have gone on helps, as long as it is right
        let would = out[to - last[0] - 1];
        while (node < 0x100) {
          const hint = (would >> 7) & 1;
          would <<= 1;
          const next = bit(literals, from + ((1 + hint) << 8) + node);
          node = (node << 1) | next;
          if (next !== hint) break;
        }
      }
      while (node < 0x100) node = (node << 1) | bit(literals, from + node);
      out[to++] = node;
      state = state < 4 ? 0 : state < 10 ? state - 3 : state - 6;
      continue;
    }
    let count;
    if (bit(isRepeat, state) === 0) {
      count = length(matchLengths, place);
      last.unshift(distance(count));
      last.pop();
      state = state < 7 ? 7 : 10;
    } else {
      let which = 0;
      let single = false;
      if (bit(isOther, state) === 0) single = bit(isLong, (state << 4) + place) === 0;
      else if (bit(isThird, state) === 0) which = 1;
      else which = 2 + bit(isFourth, state);
      last.unshift(...last.splice(which, 1));
      count = single ? 1 : length(repeatLengths, place);
      state = single ? (state < 7 ? 9 : 11) : state < 7 ? 8 : 11;
    }
    for (const end = Math.min(to + count, out.length); to < end; ++to) out[to] = out[to - last[0] - 1];
  }
  return out;
}
