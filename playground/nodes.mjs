// The table of one input: at each node its letter, where it has one, and its numbers, to be dragged or typed,
// the truth and what both models say.
import { make, number } from './dom.mjs';
import { columnsOf } from './row.mjs';

const rowsShown = 32;

/** `onInput(row, stamp)` is called with the whole row when a number was changed by hand. */
export function makeNodes(place, onInput) {
  let shape = '';
  let row = [];
  let stamp = 0;  // of the last change by hand: older answers know less than the fields
  let cells = [];

  // A letter is typed for a letter, and a word of a question for another such word.
  function letterField({ letters }, node, at) {
    const words = letters.filter((word) => (word.length > 1) === (letters[row[at]]?.length > 1));
    const field = make('input', { type: 'text', className: 'letter', autocapitalize: 'off', autocomplete: 'off', maxLength: words[0].length,
      title: words[0].length > 1 ? words.join(', ') : `${words[0]} to ${words.at(-1)}`, 'aria-label': `Node ${node}: letter` });
    const fill = () => {
      if (document.activeElement !== field) field.value = letters[row[at]];
    };
    field.oninput = () => {
      if (!words.includes(field.value)) return;
      row[at] = letters.indexOf(field.value);
      onInput(row, ++stamp);
    };
    field.onfocus = () => field.select();
    field.onblur = fill;
    return { fields: [field], fill };
  }

  function build(about, names, columns, scale) {
    const nodes = Math.min(about.real_nodes, rowsShown);
    const bound = 2 * scale;
    const withLetter = about.letters.length > 0;
    cells = Array.from({ length: nodes }, (_, node) => {
      const asks = withLetter && node < about.real_nodes - about.length;  // a question holds no number
      const inputs = Array.from({ length: asks ? 1 : columns }, (_, column) => {
        const at = node * columns + column;
        if (withLetter && column === 0) return letterField(about, node, at);
        const name = `Node ${node}${!withLetter && columns > 1 ? `, number ${column + 1}` : ''}`;
        const typed = make('input', { type: 'number', step: 'any', 'aria-label': `${name}: value` });
        const dragged = make('input', { type: 'range', min: -bound, max: bound, step: bound / 100, 'aria-label': `${name}: slider` });
        const change = (from, to) => () => {
          if (from.value === '' || !Number.isFinite(from.valueAsNumber)) return;
          row[at] = from.valueAsNumber;
          to.value = from.value;
          onInput(row, ++stamp);
        };
        typed.oninput = change(typed, dragged);
        dragged.oninput = change(dragged, typed);
        const fill = () => {
          const value = row[at];
          if (document.activeElement !== typed) typed.value = Number(value.toPrecision(4));
          if (document.activeElement !== dragged) dragged.value = value;
        };
        return { fields: columns > 1 && !withLetter ? [typed] : [typed, dragged], fill };
      });
      return { asks, inputs, truth: make('td'), first: make('td'), second: make('td') };
    });
    const head = ['node', 'input', 'truth', ...names].map((name) => make('th', { scope: 'col', textContent: name }));
    place.replaceChildren(make('table', { className: 'nodes' }, make('thead', {}, make('tr', {}, ...head)),
      make('tbody', {}, ...cells.map(({ asks, inputs, truth, first, second }, node) => make('tr', {},
        make('th', { scope: 'row', textContent: asks ? `${node} ?` : node }),
        make('td', { className: 'inputs' }, ...inputs.flatMap(({ fields }) => fields)),
        truth, first, second)))));
  }

  const texts = (values, node, columns) => Array.from(values.slice(node * columns, (node + 1) * columns), number).join(' ');

  /** `views`: what each model says of the same row (worker.mjs), null for one that has nothing to say. */
  return function show(about, names, views) {
    const view = views.find(Boolean);
    if (!view) return;
    const columns = columnsOf(about);
    const outputs = about.classes ? 1 : about.output_columns;
    if (view.stamp >= stamp || row.length !== view.row.length) row = Array.from(view.row);
    const next = [about.task, names, about.real_nodes, columns, view.scale].join();
    if (next !== shape) build(about, names, columns, view.scale);
    shape = next;
    cells.forEach(({ inputs, truth, first, second }, node) => {
      for (const { fill } of inputs) fill();
      truth.textContent = texts(view.truth, node, outputs);
      for (const [cell, each] of [[first, views[0]], [second, views[1]]]) {
        cell.textContent = each ? texts(each.outputs, node, outputs) : '–';
      }
    });
  };
}
