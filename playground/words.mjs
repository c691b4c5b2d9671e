// The table of words: what each processor holds at one moment, by the program and in the network; the
// inputs can be typed.
import { make, number } from './dom.mjs';

const inputName = (inputs, i) => (inputs.length > 1 ? `input ${i + 1}` : 'input');

/** `onInput(row, stamp)`: an input [processors, inputs] was changed by hand. */
export function makeWords(place, onInput) {
  let shown = null;
  let row = [];
  let stamp = 0;  // of the last change by hand: older answers know less than the fields
  let fields = [];
  let cells = [];

  function build(about) {
    const { processors, inputs, words } = about;
    fields = [];
    stamp = 0;
    const columns = words.map((_, i) => i).filter((i) => words[i].own);
    const head = ['processor', ...inputs.map((_, i) => inputName(inputs, i)), ...columns.map((i) => words[i].name)];
    cells = Array.from({ length: processors }, () => columns.map((word) => ({ word, cell: make('td') })));
    const lines = cells.map((line, processor) => {
      const typed = inputs.map((_, i) => {
        const field = make('input', { type: 'number', step: 'any', 'aria-label': `${inputName(inputs, i)} of processor ${processor}` });
        field.oninput = () => {
          if (field.value === '' || !Number.isFinite(field.valueAsNumber)) return;
          row[processor * inputs.length + i] = field.valueAsNumber;
          onInput(row, ++stamp);
        };
        fields.push(field);
        return make('td', {}, field);
      });
      return make('tr', {}, make('th', { scope: 'row', textContent: processor }), ...typed, ...line.map(({ cell }) => cell));
    });
    place.replaceChildren(make('table', {}, make('thead', {}, make('tr', {}, ...head.map((text) => make('th', { scope: 'col', textContent: text })))),
      make('tbody', {}, ...lines)));
  }

  /** `known`: the stamp that the input came with; `at(processor, word)` gives {program, network, wrong} at the moment to show. */
  return function show(about, input, known, at) {
    if (about !== shown) build(about);
    shown = about;
    if (known >= stamp) row = Array.from(input);
    fields.forEach((field, i) => {
      if (document.activeElement !== field) field.value = Number(row[i].toPrecision(5));
    });
    cells.forEach((line, processor) => {
      for (const { word, cell } of line) {
        const { program, network, wrong } = at(processor, word);
        cell.className = wrong ? 'wrong' : '';
        cell.textContent = wrong ? `✗ ${number(network)} (should be ${number(program)})` : number(program);
      }
    });
  };
}
