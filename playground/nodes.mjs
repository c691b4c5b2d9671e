// The table of one input: at each node its numbers, to be dragged or typed, the truth and what both models say.
import { make, number } from './dom.mjs';

const rowsShown = 32;

/** `onInput(row, stamp)` is called with the whole row when a number was changed by hand. */
export function makeNodes(place, onInput) {
  let shape = '';
  let row = [];
  let stamp = 0;  // of the last change by hand: older answers know less than the fields
  let cells = [];

  function build(about, names, columns, scale) {
    const nodes = Math.min(about.real_nodes, rowsShown);
    const bound = 2 * scale;
    cells = Array.from({ length: nodes }, (_, node) => {
      const inputs = Array.from({ length: columns }, (_, column) => {
        const at = node * columns + column;
        const name = `Node ${node}${columns > 1 ? `, number ${column + 1}` : ''}`;
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
        return { typed, dragged };
      });
      return { inputs, truth: make('td'), first: make('td'), second: make('td') };
    });
    const head = ['node', 'input', 'truth', ...names].map((name) => make('th', { scope: 'col', textContent: name }));
    place.replaceChildren(make('table', { className: 'nodes' }, make('thead', {}, make('tr', {}, ...head)),
      make('tbody', {}, ...cells.map(({ inputs, truth, first, second }, node) => make('tr', {},
        make('th', { scope: 'row', textContent: node }),
        make('td', { className: 'inputs' }, ...inputs.flatMap(({ typed, dragged }) => (columns > 1 ? [typed] : [typed, dragged]))),
        truth, first, second)))));
  }

  const texts = (values, node, columns) => Array.from(values.slice(node * columns, (node + 1) * columns), number).join(' ');

  /** `views`: what each model says of the same row (worker.mjs), null for one that has nothing to say. */
  return function show(about, names, views) {
    const view = views.find(Boolean);
    if (!view) return;
    const columns = view.row.length / about.real_nodes;
    const outputs = about.classes ? 1 : about.output_columns;
    const next = [names, about.real_nodes, columns, view.scale].join();
    if (next !== shape) build(about, names, columns, view.scale);
    shape = next;
    if (view.stamp >= stamp || row.length !== view.row.length) row = Array.from(view.row);
    cells.forEach(({ inputs, truth, first, second }, node) => {
      inputs.forEach(({ typed, dragged }, column) => {
        const value = row[node * columns + column];
        if (document.activeElement !== typed) typed.value = Number(value.toPrecision(4));
        if (document.activeElement !== dragged) dragged.value = value;
      });
      truth.textContent = texts(view.truth, node, outputs);
      for (const [cell, each] of [[first, views[0]], [second, views[1]]]) {
        cell.textContent = each ? texts(each.outputs, node, outputs) : '–';
      }
    });
  };
}
