// The page: two workers, each with its own engine, trained in step; what they say is drawn here.
import { drawLines, drawMaps } from './chart.mjs';

const ahead = 10;  // epochs that one model may be ahead of the other
const element = (id) => document.getElementById(id);
const number = (value) => (Number.isNaN(value) ? '?' : value.toPrecision(3));

async function compiledModule() {
  const bytes = Uint8Array.from(atob(element('module').textContent), (letter) => letter.charCodeAt(0));
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return WebAssembly.compile(await new Response(plain).arrayBuffer());
}

const sides = [
  { architecture: 'positional', place: 'left', colour: '--left', dash: [] },
  { architecture: 'standard', place: 'right', colour: '--right', dash: [6, 4] },
];
let running = false;
let sample = 0;
let drawing = false;

function redraw() {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => {
    drawing = false;
    const lines = (points) => sides.map((side) => ({ name: side.architecture, colour: side.colour, dash: side.dash, points: points(side) }));
    drawLines(element('losses'), lines((side) => side.points));
    drawLines(element('errors'), lines((side) => side.errors), Number(element('c').value));
    for (const side of sides) if (side.view) showView(side);
  });
}

function showView(side) {
  const { row, outputs, truth, attention } = side.view;
  const { depth, heads, real_nodes, scratch_nodes, output_columns } = side.about;
  drawMaps(side.maps, attention, { depth, heads, nodes: real_nodes + scratch_nodes });
  const shown = side.about.classes ? 1 : output_columns;
  const line = (name, values) => `<tr><th scope="row">${name}</th>${Array.from(values, (v) => `<td>${number(v)}</td>`).join('')}</tr>`;
  const first = (values) => values.filter((_, i) => i % shown === 0);
  side.table.innerHTML = line('input', row.slice(0, 32)) + line('truth', first(truth).slice(0, 32)) + line('model', first(outputs).slice(0, 32));
}

function pace() {
  const last = Math.min(...sides.map((side) => side.epoch));
  for (const side of sides) side.worker.postMessage({ type: 'pace', epoch: running ? last + ahead : 0 });
}

function settings(architecture) {
  const chosen = Object.fromEntries(['task', 'width', 'depth', 'lr', 'seed'].map((id) => [id, element(id).value]));
  return { ...chosen, 'mlp-width': chosen.width, architecture, samples: 500, batch: 50, epochs: 100000, fresh: true,
    schedule: 'constant', 'validation-samples': 10, 'test-samples': 10, 'validate-every': 0, 'test-every': 0 };
}

function reset() {
  element('problem').textContent = '';
  for (const side of sides) {
    Object.assign(side, { epoch: 0, points: [], errors: [], view: null });
    side.worker.postMessage({ type: 'train', settings: settings(side.architecture) });
  }
}

function setRunning(value) {
  running = value;
  element('go').textContent = running ? 'Pause' : 'Train';
  pace();
}

const handlers = {
  ready(side, { catalogue }) {
    side.ready = true;
    if (!sides.every((each) => each.ready)) return;
    const numeric = catalogue.tasks.filter((task) => Object.keys(task.settings).length === 0);
    element('task').replaceChildren(...numeric.map(({ name, description }) => Object.assign(new Option(name, name), { title: description })));
    element('status').textContent = `ready (${catalogue.instruction_set})`;
    reset();
  },
  trained(side, { about }) {
    side.about = about;
  },
  progress(side, { epoch, points }) {
    side.epoch = epoch;
    side.points.push(...points.map(({ step, loss }) => [step, loss]));
    if (side.points.length > 2000) side.points = side.points.filter((_, i) => i % 2 === 0);
    element('status').textContent = `${points.at(-1).step} steps`;
    pace();
  },
  errors(side, { errors }) {
    side.errors = errors.map(({ x, loss }) => [x, loss]);
  },
  view(side, message) {
    side.view = message;
  },
  finished(side, { problem }) {
    if (problem) element('problem').textContent = `${side.architecture}: ${problem}`;
    setRunning(false);
  },
  failed(side, { message }) {
    element('problem').textContent = `${side.architecture}: ${message}`;
    setRunning(false);
  },
};

const module = await compiledModule();
const script = URL.createObjectURL(new Blob([element('worker').textContent], { type: 'text/javascript' }));
for (const side of sides) {
  const section = element(side.place);
  section.append(Object.assign(document.createElement('h2'), { textContent: side.architecture }),
    (side.table = document.createElement('table')), (side.maps = document.createElement('canvas')));
  side.maps.className = 'maps';
  side.maps.setAttribute('role', 'img');
  side.maps.setAttribute('aria-label', `Attention of the ${side.architecture} model: a row of maps for each layer, one for each head`);
  Object.assign(side, { epoch: 0, points: [], errors: [], worker: new Worker(script) });
  side.worker.onmessage = ({ data }) => {
    handlers[data.type]?.(side, data);
    redraw();
  };
  side.worker.onerror = (event) => handlers.failed(side, event);
  side.worker.postMessage({ type: 'init', module });
}

element('go').onclick = () => setRunning(!running);
element('reset').onclick = () => {
  setRunning(false);
  reset();
};
for (const id of ['task', 'width', 'depth', 'lr', 'seed']) element(id).onchange = element('reset').onclick;
const look = () => {
  element('cValue').textContent = element('c').value;
  for (const side of sides) side.worker.postMessage({ type: 'look', scale: Number(element('c').value), sample });
};
element('c').oninput = look;
element('another').onclick = () => {
  ++sample;
  look();
};
window.addEventListener('resize', redraw);
