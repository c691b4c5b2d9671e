// Numbers that stand for letters: a, b, ... for 1, 2, ..., and _ for none. The k-hop task has them.
import { number } from './dom.mjs';

const alphabet = '_abcdefghijklmnopqrstuvwxyz';
const range = /^int\[(\d+)\.\.(\d+)\]$/;

// What a text says of the words it declares: {letter: 'q', place: 'n - 1'}, their largest numbers.
const declared = (source) => Object.fromEntries([...source.matchAll(/^\s*word\s+(\w+)\s*:\s*int\[[^\]]*\.\.\s*([^\]]*?)\s*\]/gm)].map(([, name, high]) => [name, high]));

/** How the words of a program are written: text(words, word, value), a dot before they have one; isLetter(words, word). */
export function lettersOf(about, source) {
  const first = about.words[about.inputs[0]];
  const high = Number(range.exec(first.type)?.[2]);
  const bounds = declared(source);
  // Words with as many values as the first input has, unless the text gives them another bound.
  const isLetter = (words, word) => {
    const { name, type } = words[word];
    return about.task === 'k-hop' && high < alphabet.length && Number(range.exec(type)?.[2]) === high
      && (bounds[name] ?? bounds[first.name]) === bounds[first.name];
  };
  return {
    isLetter,
    text: (words, word, value) => (Number.isNaN(value) ? '·' : isLetter(words, word) ? alphabet[Math.round(value)] ?? number(value) : number(value)),
    /** The number of a typed letter, NaN for what is none of the first input's. */
    valueOf(letter) {
      const value = alphabet.indexOf(letter.toLowerCase());
      return letter.length === 1 && value >= 1 && value <= high ? value : NaN;
    },
    last: alphabet[high],
  };
}
