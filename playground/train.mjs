// The tab Train: two workers, each with its own engine, trained in step; what they say is drawn here.
import { drawLines, drawMaps, drawPredictions } from './chart.mjs';
import { EngineWorker } from './client.mjs';
import { element, make, number, oncePerFrame, say } from './dom.mjs';
import { modelFiles } from './files.mjs';
import { bytesOf, givenModels } from './given.mjs';
import { makeNodes } from './nodes.mjs';

const ahead = 4;  // epochs that one model may be ahead of the other
const fields = ['task', 'first', 'second', 'width', 'depth', 'lr', 'seed'];

/** `onChange()` is called when a setting changed. */
export function makeTrain(module, catalogue, onChange) {
  const sides = [
    { place: 'first', colour: '--first', dash: [] },
    { place: 'second', colour: '--second', dash: [6, 4] },
  ];
  let running = false;
  let sample = 0;
  let typed = false;
  let length = 8;
  let target = 0;

  const name = (side) => (side.loaded ? `${side.about.architecture} (${side.loaded})` : element(side.place).value);
  const scale = () => Number(element('c').value);
  const comparable = () => sides[0].view && sides[1].view && sides[0].view.row.length === sides[1].view.row.length;
  const views = () => (comparable() ? sides.map((side) => side.view) : [sides[0].view, null]);

  const showNodes = makeNodes(element('nodes'), (row, stamp) => {
    typed = true;
    for (const side of sides) if (side.view?.row.length === row.length) side.worker.send('look', { row, stamp, scale: scale() });
  });

  function summary() {
    const [first, second] = sides;
    if (!first.view || !second.view || sides.every((side) => side.points.length === 0 && !side.loaded)) return 'Press Train, then move c.';
    // Both answer at their own time: until both know of c, what was said before stays.
    if (first.view.scale !== second.view.scale) return element('summary').textContent;
    const parts = sides.map((side) => `${name(side)}: error ${number(side.view.error)}`
      + (Number.isNaN(side.view.moved) ? '' : `, attention moved ${Math.round(100 * side.view.moved)} %`));
    return `At c = ${first.view.scale} ${parts.join('; ')}.`;
  }

  function draw() {
    const lines = (points) => sides.map((side) => ({ colour: side.colour, dash: side.dash, ...points(side) }));
    drawLines(element('losses'), lines((side) => ({ points: side.points })), undefined,
      trainable().length > 0 ? 'not trained yet' : 'both models are from files');
    drawLines(element('errors'), lines((side) => ({ points: side.errors })), scale());
    say(element('summary'), summary());
    for (const side of sides) {
      say(side.title, `Attention of ${name(side)}`);
      say(document.querySelector(`.key.${side.place}`), name(side));
      if (!side.view) continue;
      drawMaps(side.maps, side.view.attention, { ...side.about, nodes: side.about.real_nodes + side.about.scratch_nodes });
      say(side.text, `${side.about.parameters} parameters. Row i shows whom node i reads: the more ink, the more. The last row and column are a scratch node.`);
    }
    if (sides[0].view) {
      showNodes(sides[0].about, sides.map(name), views());
      drawPredictions(element('predictions'), views().flatMap((view, i) => (view ? [{ ...sides[i], values: view.outputs }] : [])), sides[0].view.truth);
    }
  }
  const redraw = oncePerFrame(draw);

  const trainable = () => sides.filter((side) => !side.loaded);
  // Both train up to the same epoch, so that they have equal steps whenever they rest.
  function trainTo(epoch) {
    target = Math.max(target, epoch);
    for (const side of trainable()) side.worker.send('pace', { epoch: target });
  }
  const goOn = () => trainTo(Math.min(...trainable().map((side) => side.epoch)) + ahead);

  function setRunning(value) {
    running = value && trainable().length > 0;
    if (value && !running) say(element('status'), 'both models are from files: Reset makes new ones to train');
    say(element('go'), running ? 'Pause' : 'Train');
    // A screen reader is told at rest, not many times a second.
    for (const id of ['summary', 'status']) element(id).setAttribute('aria-live', running ? 'off' : 'polite');
    if (running) goOn();
  }

  function settings(side) {
    const chosen = Object.fromEntries(['task', 'width', 'depth', 'lr', 'seed'].map((id) => [id, element(id).value]));
    return { ...chosen, length, architecture: element(side.place).value, 'mlp-width': chosen.width, samples: 500, batch: 50,
      epochs: 100000, fresh: true, schedule: 'constant', 'validation-samples': 10, 'test-samples': 10, 'validate-every': 0, 'test-every': 0 };
  }

  function begin(side) {
    // What comes before the answer `trained` is of the model before.
    Object.assign(side, { epoch: 0, points: [], errors: [], view: null, loaded: '', about: null });
    target = 0;
    side.worker.send('train', { settings: settings(side) });
  }

  function reset() {
    setRunning(false);
    length = 8;
    typed = false;
    say(element('problem'), '');
    say(element('status'), 'ready');
    for (const side of sides) begin(side);
    look();
  }

  function look() {
    say(element('cValue'), element('c').value);
    for (const side of sides) {
      // A typed input keeps its shape and grows with c.
      const row = typed && side.view ? Array.from(side.view.row, (value) => (value / side.view.scale) * scale()) : null;
      side.worker.send('look', { scale: scale(), sample, row });
    }
    redraw();
    onChange();
  }

  const problem = (side, text) => {
    say(element('problem'), `${name(side)}: ${text}`);
    setRunning(false);
  };

  const handlers = (side) => ({
    trained({ about, loaded }) {
      side.about = about;
      if (!loaded) return;
      Object.assign(side, { epoch: Infinity, points: [], errors: [], view: null, loaded, expected: false });
      say(element('status'), `${about.architecture} model for ${about.task} loaded`);
      const known = [...element('task').options].some((option) => option.value === about.task);
      if (known) element('task').value = about.task;
      const other = sides.find((each) => each !== side);
      if (known && !other.loaded && !other.expected && (other.about?.task !== about.task || other.about?.length !== about.length)) {
        length = about.length;
        begin(other);
      }
    },
    progress({ epoch, points }) {
      if (side.loaded || !side.about) return;
      side.epoch = epoch;
      side.points.push(...points.map(({ step, loss }) => [step, loss]));
      if (side.points.length > 2000) side.points = side.points.filter((_, i) => i % 2 === 0);
      say(element('status'), `${Math.min(...trainable().map((each) => each.points.at(-1)?.[0] ?? 0))} steps`);
      if (running) goOn();
    },
    errors({ errors }) {
      if (side.about) side.errors = errors.map(({ x, loss }) => [x, loss]);
    },
    view(view) {
      if (side.about) side.view = view;
    },
    saved({ bytes }) {
      side.files.download(bytes, `${element('task').value}-${side.about.architecture}.safetensors`);
    },
    finished: (message) => problem(side, message.problem || 'all epochs are done'),
    failed({ message, problem: refused }) {
      problem(side, message);
      // What the library refuses has a problem; anything else may have broken the engine.
      if (refused === undefined) side.worker.stop();
    },
  });

  const chosen = (id, values, value) => {
    element(id).replaceChildren(...values.map((each) => make('option', { value: each.name, textContent: each.name, title: each.description })));
    element(id).value = value;
  };
  chosen('task', catalogue.tasks.filter((task) => Object.keys(task.settings).length === 0), 'cumulative-sum');
  const architectures = catalogue.architectures.filter(({ description }) => !description.startsWith('the same as'));
  chosen('first', architectures, 'positional');
  chosen('second', architectures, 'standard');

  for (const side of sides) {
    side.title = make('h2');
    side.text = make('p', { className: 'hint' });
    side.maps = make('canvas', { className: 'maps', role: 'img',
      'aria-label': `Attention of the ${side.place} model: a row of maps for each layer, one for each head; row i is what node i reads` });
    side.files = modelFiles(side.place, (bytes, file) => side.worker.send('load', { bytes, name: file }), () => side.worker.send('save'));
    const section = element(`model-${side.place}`);
    section.append(side.title, side.text, make('div', {}, side.maps), side.files.element);
    side.files.dropOn(section);
    const own = handlers(side);
    const redrawn = Object.fromEntries(Object.entries(own).map(([type, body]) => [type, (message) => {
      body(message);
      redraw();
    }]));
    side.worker = new EngineWorker(module, redrawn);
  }

  // Both places are told before either answers: none of them is to train for the other then.
  function loadGiven() {
    setRunning(false);
    givenModels.forEach(({ name: file, bytes }, i) => {
      sides[i].expected = true;
      sides[i].worker.send('load', { bytes: bytesOf(bytes), name: file });
    });
  }
  element('given-models').hidden = givenModels.length === 0;
  element('given-models').onclick = loadGiven;

  element('go').onclick = () => setRunning(!running);
  element('step').onclick = () => {
    setRunning(false);
    if (trainable().length > 0) trainTo(target + 1);
    else setRunning(true);
  };
  element('reset').onclick = reset;
  for (const id of fields) element(id).onchange = reset;
  element('train-settings').onsubmit = (event) => event.preventDefault();
  element('c').oninput = look;
  element('another').onclick = () => {
    ++sample;
    typed = false;
    look();
  };
  // A file dropped beside its place must not replace the page.
  for (const type of ['dragover', 'drop']) window.addEventListener(type, (event) => event.preventDefault());
  window.addEventListener('resize', redraw);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);

  return {
    redraw,
    values: () => Object.fromEntries([...fields, 'c'].map((id) => [id, element(id).value])),
    /** Takes over settings by their names and starts anew; what is not a choice is left as it was. */
    apply(values) {
      for (const id of [...fields, 'c']) {
        const input = element(id);
        const possible = input.options ? [...input.options].some((option) => option.value === values[id]) : Number.isFinite(parseFloat(values[id]));
        if (values[id] !== undefined && possible) input.value = values[id];
      }
      reset();
    },
    setScale(value) {
      element('c').value = value;
      look();
    },
    setRunning,
    loadGiven,
  };
}
