// The table of words: what each processor holds at one moment, by the program and in the network; the
// inputs can be typed, as letters where they are some.
import { make } from './dom.mjs';

const inputName = (inputs, i) => (inputs.length > 1 ? `input ${i + 1}` : 'input');

/** `onInput(row, stamp)`: an input [processors, inputs] was changed by hand. */
export function makeWords(place, onInput) {
  let shown = [];
  let row = [];
  let stamp = 0;  // of the last change by hand: older answers know less than the fields
  let fields = [];
  let cells = [];

  // What the program takes for granted stays so: one number for all, or a number changes places with the one that had it.
  function change(about, processor, input, value) {
    const at = (i) => i * about.inputs.length + input;
    const promise = about.promises.find(({ first, count }) => first <= input && input < first + count)?.promise;
    if (promise === 'same') {
      for (let i = 0; i < about.processors; ++i) row[at(i)] = value;
    } else {
      if (promise === 'permutation') {
        for (let i = 0; i < about.processors; ++i) if (row[at(i)] === value) row[at(i)] = row[at(processor)];
      }
      row[at(processor)] = value;
    }
  }

  function build(about, moments, letters) {
    const { processors, inputs } = about;
    const { words } = moments;
    fields = [];
    const columns = words.map((_, i) => i).filter((i) => words[i].own);
    const head = ['processor', ...inputs.map((word, i) => `${inputName(inputs, i)}: ${about.words[word].name}`), ...columns.map((i) => words[i].name)];
    cells = Array.from({ length: processors }, () => columns.map((word) => ({ word, cell: make('td') })));
    const lines = cells.map((line, processor) => {
      const typed = inputs.map((word, i) => {
        const isLetter = i === 0 && letters.isLetter(about.words, word);
        const field = make('input', { ...(isLetter ? { type: 'text', maxLength: 1, className: 'letter', autocapitalize: 'off', autocomplete: 'off', title: `a to ${letters.last}` } : { type: 'number', step: 'any' }),
          'aria-label': `${inputName(inputs, i)} of processor ${processor}` });
        field.oninput = () => {
          const value = isLetter ? letters.valueOf(field.value) : field.valueAsNumber;
          if (field.value === '' || !Number.isFinite(value)) return;
          change(about, processor, i, value);
          onInput(row, ++stamp);
        };
        field.onfocus = () => field.select();
        field.onblur = () => { field.value = textOf(processor * inputs.length + i); };
        const textOf = (at) => (isLetter ? letters.text(about.words, word, row[at]) : String(Number(row[at].toPrecision(5))));
        fields.push({ field, textOf });
        return make('td', {}, field);
      });
      return make('tr', {}, make('th', { scope: 'row', textContent: processor }), ...typed, ...line.map(({ cell }) => cell));
    });
    place.replaceChildren(make('table', { className: 'words' }, make('thead', {}, make('tr', {}, ...head.map((text) => make('th', { scope: 'col', textContent: text })))),
      make('tbody', {}, ...lines)));
  }

  /** `known`: the stamp that the input came with; moments (moments.mjs), of which `moment` is shown. */
  return function show(about, moments, letters, { row: input, stamp: known }, moment) {
    if (about !== shown[0]) stamp = 0;
    if (known >= stamp || input.length !== row.length) row = Array.from(input);
    if (about !== shown[0] || moments.written !== shown[1]) build(about, moments, letters);
    shown = [about, moments.written];
    fields.forEach(({ field, textOf }, i) => {
      if (document.activeElement !== field) field.value = textOf(i);
    });
    cells.forEach((line, processor) => {
      for (const { word, cell } of line) {
        const { program, network, wrong } = moments.at(moment, processor, word);
        const text = (value) => letters.text(moments.words, word, value);
        cell.className = wrong ? 'wrong' : '';
        cell.textContent = wrong ? `✗ ${text(network)} ≠ ${text(program)}` : text(program);
      }
    });
  };
}
