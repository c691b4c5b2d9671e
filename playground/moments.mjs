// What a program and its network hold at every moment: before the first round and after each. As the
// network carries it out, or as it is written, with messages.

const realTolerance = 0.05;  // of the largest number; whole numbers are wrong where they round to another

/** `about` and `flow` as the worker sends them; `written`: as the program says, where it sends messages. */
export function momentsOf(about, flow, written) {
  const level = written ? about.written : about;
  const { processors } = about;
  const { words, rounds } = level;
  const place = (moment, processor, word) => (moment * processors + processor) * words.length + word;

  // From which moment on a word has a value: most get theirs in some round.
  const since = words.map(({ starts }) => (starts ? 0 : Infinity));
  rounds.forEach(({ sets }, r) => sets.forEach((word) => { since[word] = Math.min(since[word], r + 1); }));

  const at = (moment, processor, word) => {
    if (moment < since[word]) return { program: NaN, network: NaN, wrong: false };
    if (written) return { program: flow.trace[place(moment, processor, word)], network: NaN, wrong: false };
    const where = 2 * place(moment, processor, word);
    const [program, network] = [flow.words[where], flow.words[where + 1]];
    const allowed = words[word].type === 'real' ? realTolerance * flow.largest : 0.5;
    return { program, network, wrong: Math.abs(network - program) > allowed };
  };

  const somewhere = (moment, test) => {
    for (let processor = 0; processor < processors; ++processor) {
      for (let word = 0; word < words.length; ++word) if (test(at(moment, processor, word))) return true;
    }
    return false;
  };

  // A message comes from the processor whose word says so when the round begins.
  const readers = rounds.map((round, r) => Array.from({ length: processors }, () => new Set()).map((sources, i) => {
    for (const receive of round.receives) {
      if (receive.destination !== undefined) {
        for (let j = 0; j < processors; ++j) if (at(r, j, receive.destination).program === i) sources.add(j);
      } else if (receive.sources) {
        if (receive.sources[i] < processors) sources.add(receive.sources[i]);
      } else {
        for (let j = 0; j < processors; ++j) sources.add(j);  // weighted: everybody
      }
    }
    return sources;
  }));

  return {
    written,
    processors,
    words,
    rounds,
    inputs: level.inputs,
    outputs: level.outputs,
    at,
    /** Whom processor i reads in a round. */
    reads: (round, i) => readers[round][i],
    /** The first round after which the network holds something else than the program, 0 for none. */
    firstWrong() {
      for (let moment = 1; moment <= rounds.length; ++moment) if (somewhere(moment, ({ wrong }) => wrong)) return moment;
      return 0;
    },
    /** How far the network is from the program at a moment, at most. */
    drift(moment) {
      let most = 0;
      somewhere(moment, ({ program, network }) => {
        if (!Number.isNaN(network)) most = Math.max(most, Math.abs(network - program));
        return false;
      });
      return most;
    },
  };
}
