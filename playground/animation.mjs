// Screenshots as one animated PNG, which browsers and README pages show as they show any picture. Of
// every frame only the rectangle that changed is kept.
import { deflateSync, inflateSync } from 'node:zlib';

const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const depth = 8;
const rgb = 2;
const rgba = 6;

function chunksOf(png) {
  const chunks = [];
  for (let at = signature.length; at < png.length;) {
    const size = png.readUInt32BE(at);
    chunks.push({ type: png.toString('latin1', at + 4, at + 8), data: png.subarray(at + 8, at + 8 + size) });
    at += size + 12;
  }
  return chunks;
}

const paeth = (a, b, c) => {
  const [left, up, corner] = [Math.abs(b - c), Math.abs(a - c), Math.abs(a + b - 2 * c)];
  if (left <= up && left <= corner) return a;
  return up <= corner ? b : c;
};

/** {width, height, pixels: three bytes each} of a PNG as chromium writes it. */
function decoded(png) {
  const chunks = chunksOf(png);
  const header = chunks[0].data;
  const [width, height, colour] = [header.readUInt32BE(0), header.readUInt32BE(4), header[9]];
  if (header[8] !== depth || (colour !== rgb && colour !== rgba)) throw new Error('a screenshot of another kind than expected');
  const bytes = colour === rgb ? 3 : 4;
  const line = width * bytes;
  const lines = inflateSync(Buffer.concat(chunks.filter(({ type }) => type === 'IDAT').map(({ data }) => data)));
  const plain = Buffer.alloc(line * height);
  for (let y = 0; y < height; ++y) {
    const filter = lines[y * (line + 1)];
    for (let x = 0; x < line; ++x) {
      const here = y * line + x;
      const a = x >= bytes ? plain[here - bytes] : 0;
      const b = y > 0 ? plain[here - line] : 0;
      const c = x >= bytes && y > 0 ? plain[here - line - bytes] : 0;
      plain[here] = lines[y * (line + 1) + 1 + x] + [0, a, b, (a + b) >> 1, paeth(a, b, c)][filter];
    }
  }
  const pixels = Buffer.alloc(3 * width * height);
  for (let i = 0; i < width * height; ++i) plain.copy(pixels, 3 * i, bytes * i, bytes * i + 3);
  return { width, height, pixels };
}

/** The rectangle outside of which two pictures are the same; a single pixel where all of it is. */
function changed(before, after) {
  const { width, height } = after;
  let [left, top, right, bottom] = [width, height, 0, 0];
  for (let y = 0; y < height; ++y) {
    for (let x = 0; x < width; ++x) {
      const at = 3 * (y * width + x);
      if (before.pixels.compare(after.pixels, at, at + 3, at, at + 3) === 0) continue;
      [left, top, right, bottom] = [Math.min(left, x), Math.min(top, y), Math.max(right, x + 1), Math.max(bottom, y + 1)];
    }
  }
  return right === 0 ? { left: 0, top: 0, width: 1, height: 1 } : { left, top, width: right - left, height: bottom - top };
}

/** The rectangle's lines, each as it is or as differences from the line above: what is smaller. */
function compressed({ width, pixels }, area) {
  const line = 3 * area.width;
  const pack = (filter) => {
    const lines = Buffer.alloc((line + 1) * area.height);
    for (let y = 0; y < area.height; ++y) {
      const from = 3 * ((area.top + y) * width + area.left);
      lines[y * (line + 1)] = filter;
      for (let x = 0; x < line; ++x) lines[y * (line + 1) + 1 + x] = pixels[from + x] - (filter && y > 0 ? pixels[from + x - 3 * width] : 0);
    }
    return deflateSync(lines, { level: 9 });
  };
  const [plain, differences] = [pack(0), pack(2)];
  return plain.length <= differences.length ? plain : differences;
}

function crc32(bytes) {
  let rest = 0xffffffff;
  for (const byte of bytes) {
    rest ^= byte;
    for (let bit = 0; bit < 8; ++bit) rest = (rest >>> 1) ^ (rest & 1 ? 0xedb88320 : 0);
  }
  return (rest ^ 0xffffffff) >>> 0;
}

function chunk(type, ...parts) {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), ...parts]);
  const around = Buffer.alloc(8);
  around.writeUInt32BE(body.length - 4, 0);
  around.writeUInt32BE(crc32(body), 4);
  return Buffer.concat([around.subarray(0, 4), body, around.subarray(4)]);
}

const words = (...values) => {
  const bytes = Buffer.alloc(4 * values.length);
  values.forEach((value, i) => bytes.writeUInt32BE(value, 4 * i));
  return bytes;
};

/** Frames [{png, milliseconds}] of one size, repeated without an end. */
export function animation(frames) {
  const pictures = frames.map(({ png }) => decoded(png));
  const { width, height } = pictures[0];
  const parts = [signature, chunk('IHDR', words(width, height), Buffer.from([depth, rgb, 0, 0, 0])), chunk('acTL', words(frames.length, 0))];
  let sequence = 0;
  pictures.forEach((picture, i) => {
    const area = i === 0 ? { left: 0, top: 0, width, height } : changed(pictures[i - 1], picture);
    const delay = Buffer.alloc(6);  // a fraction of a second; what was there stays, and is written over
    delay.writeUInt16BE(frames[i].milliseconds, 0);
    delay.writeUInt16BE(1000, 2);
    parts.push(chunk('fcTL', words(sequence++, area.width, area.height, area.left, area.top), delay));
    const data = compressed(picture, area);
    parts.push(i === 0 ? chunk('IDAT', data) : chunk('fdAT', words(sequence++), data));
  });
  parts.push(chunk('IEND'));
  return Buffer.concat(parts);
}
