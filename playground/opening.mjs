// The input that a program opens with: the digits of pi where any numbers will do.
const digits = '3141592653589793238462643383279502884197169399375105820974944592';

/** `drawn`: an input [processors, inputs] that keeps the program's promises. */
export function openingInput({ words, inputs, promises }, drawn) {
  const free = inputs.map((word, i) => words[word].type === 'real' && !promises.some(({ first, count }) => first <= i && i < first + count));
  let next = 0;
  return drawn.map((value, at) => (free[at % inputs.length] ? Number(digits[next++ % digits.length]) : value));
}
