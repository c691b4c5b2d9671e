// The tab Train: two workers, each with its own engine, trained in step; what they say is drawn here.
import { arrows } from './arrows.mjs';
import { drawLines, drawMaps, drawPredictions, mapScale } from './chart.mjs';
import { EngineWorker } from './client.mjs';
import { element, make, number, oncePerFrame, plural, say } from './dom.mjs';
import { modelFiles } from './files.mjs';
import { bytesOf, givenModels } from './given.mjs';
import { makeNodes } from './nodes.mjs';
import { scaled } from './row.mjs';

const ahead = 4;  // epochs that one model may be ahead of the other
const fields = ['task', 'first', 'second', 'width', 'depth', 'blocks', 'lr', 'seed'];
const both = 2;  // a sample with numbers of both signs
// What tasks of letters and numbers are learned with in seconds.
const forLetters = (task) => ({ first: 'two-streams', second: 'standard', width: '32', depth: task === 'recall' ? '1' : '2', blocks: 'LayerNorm', lr: '0.002' });

/** `onChange()` is called when a setting changed. */
export function makeTrain(module, catalogue, onChange) {
  const panels = [
    { place: 'first', colour: '--first', dash: [] },
    { place: 'second', colour: '--second', dash: [6, 4] },
  ];
  let running = false;
  let sample = 0;
  let typed = false;
  let length = 8;
  let target = 0;
  let suited = '';  // the task that the settings were chosen for

  const name = (panel) => (panel.loaded ? `${panel.about.architecture} (${panel.loaded})` : element(panel.place).value);
  // As short as a table's head has to be.
  const shortName = (panel) => {
    const both = panels.map((each) => (each.loaded ? each.about.architecture : element(each.place).value));
    return both[0] === both[1] ? panel.place : both[panels.indexOf(panel)];
  };
  const scale = () => Number(element('c').value);
  const comparable = () => panels[0].view && panels[1].view && panels[0].view.row.length === panels[1].view.row.length;
  const views = () => (comparable() ? panels.map((panel) => panel.view) : [panels[0].view, null]);

  const showNodes = makeNodes(element('nodes'), (row, stamp) => {
    typed = true;
    for (const panel of panels) if (panel.view?.row.length === row.length) panel.worker.send('look', { row, stamp, scale: scale() });
  });

  function summary() {
    const [first, second] = panels;
    if (!first.view || !second.view || panels.every((panel) => panel.points.length === 0 && !panel.loaded)) return 'Press Train, then move c.';
    // Both answer at their own time: until both know of c, what was said before stays.
    if (first.view.scale !== second.view.scale) return element('summary').textContent;
    const parts = panels.map((panel) => `${shortName(panel)}: error ${number(panel.view.error)}`
      + (Number.isNaN(panel.view.moved) ? '' : `, attention moved ${Math.round(100 * panel.view.moved)} %`));
    return `At c = ${first.view.scale} ${parts.join('; ')}.`;
  }

  const sizes = ({ length: numbers, width, depth, heads, parameters }) =>
    `length ${numbers}, width ${width}, ${plural(depth, 'layer')}, ${plural(heads, 'head')}, ${plural(parameters, 'parameter')}`;

  // Said where the maps are not those of shares between 0 and 1.
  function colours(attention) {
    const { full, negative } = mapScale(attention);
    return (full === 1 ? '' : `; full colour: weight ${number(full)}`) + (negative ? '; red: below 0' : '');
  }

  function draw() {
    const lines = (points) => panels.map((panel) => ({ colour: panel.colour, dash: panel.dash, ...points(panel) }));
    drawLines(element('losses'), lines((panel) => ({ points: panel.points })), undefined,
      trainable().length > 0 ? 'not trained yet' : 'both models are from files');
    drawLines(element('errors'), lines((panel) => ({ points: panel.errors })), scale());
    say(element('summary'), summary());
    for (const panel of panels) {
      say(panel.title, `Attention of ${name(panel)}`);
      say(panel.filesOf, `The ${panel.place} model: ${name(panel)}`);
      say(document.querySelector(`.key.${panel.place}`), name(panel));
      if (!panel.view) continue;
      panel.arrows.hidden = panel.about.letters.length === 0;
      panel.arrows.replaceChildren(...(panel.arrows.hidden ? [] : [arrows(panel.about, panel.view, panel.place)]));
      drawMaps(panel.maps, panel.view.attention, { ...panel.about, nodes: panel.about.real_nodes + panel.about.scratch_nodes });
      say(panel.text, sizes(panel.about) + colours(panel.view.attention));
    }
    element('arrows-hint').hidden = !hasLetters(panels[0].about?.task);
    element('scratch-hint').hidden = !panels.some((panel) => panel.about?.scratch_nodes > 0);
    if (panels[0].view) {
      showNodes(panels[0].about, panels.map(shortName), views());
      element('predictions').parentElement.hidden = panels[0].view.outputs.filter(Number.isFinite).length < 2;
      drawPredictions(element('predictions'), views().flatMap((view, i) => (view ? [{ ...panels[i], values: view.outputs }] : [])), panels[0].view.truth);
    }
  }
  const redraw = oncePerFrame(draw);

  const hasLetters = (task) => catalogue.tasks.some(({ name: each, letters }) => each === task && letters);
  const trainable = () => panels.filter((panel) => !panel.loaded);
  // Both train up to the same epoch, so that they have equal steps whenever they rest.
  function trainTo(epoch) {
    target = Math.max(target, epoch);
    for (const panel of trainable()) panel.worker.send('pace', { epoch: target });
  }
  const goOn = () => trainTo(Math.min(...trainable().map((panel) => panel.epoch)) + ahead);

  function setRunning(value) {
    running = value && trainable().length > 0;
    if (value && !running) say(element('status'), 'both models are from files: Reset makes new ones to train');
    say(element('go'), running ? 'Pause' : 'Train');
    // A screen reader is told at rest, not many times a second.
    for (const id of ['summary', 'status']) element(id).setAttribute('aria-live', running ? 'off' : 'polite');
    if (running) goOn();
  }

  function settings(panel) {
    const chosen = Object.fromEntries(['task', 'width', 'depth', 'lr', 'seed'].map((id) => [id, element(id).value]));
    // With one head an arrow is its weight.
    const heads = hasLetters(chosen.task) ? { heads: 1 } : {};
    const blocks = element('blocks').value === 'LayerNorm' ? { join: 'add', normalisation: 'before' } : {};
    return { ...chosen, ...heads, ...blocks, length, architecture: element(panel.place).value, 'mlp-width': chosen.width, samples: 500, batch: 50,
      epochs: 100000, fresh: true, schedule: 'constant', 'validation-samples': 10, 'test-samples': 10, 'validate-every': 0, 'test-every': 0 };
  }

  const isChoice = (id, value) => [...element(id).options].some((option) => option.value === String(value));
  // Shows a setting; '' where there is none to show.
  function put(id, value) {
    if (element(id).options && !isChoice(id, value)) element(id).append(make('option', { value, textContent: value === '' ? '–' : value }));
    element(id).value = value;
  }

  const usualFor = (task) => ({ ...usual, ...(hasLetters(task) ? forLetters(task) : {}) });
  // Other settings suit tasks of letters than those of numbers alone.
  function suit() {
    const task = element('task').value;
    if (hasLetters(task) || hasLetters(suited)) for (const id of Object.keys(forLetters(task))) element(id).value = usualFor(task)[id];
    suited = task;
    sample = hasLetters(task) ? both : 0;
  }

  // The settings of the models from files, where they agree. What no file has is not shown.
  function showSettings() {
    const loaded = panels.filter((panel) => panel.loaded);
    const agreed = (id) => {
      const values = new Set(loaded.map((panel) => panel.about[id]));
      return values.size === 1 ? [...values][0] : '';
    };
    for (const panel of loaded) put(panel.place, isChoice(panel.place, panel.about.architecture) ? panel.about.architecture : '');
    put('task', isChoice('task', agreed('task')) ? agreed('task') : '');
    suited = element('task').value;
    put('blocks', usualFor(suited).blocks);
    for (const id of ['width', 'depth']) put(id, agreed(id));
    if (loaded.length === panels.length) for (const id of ['blocks', 'lr', 'seed']) put(id, '');
  }

  function begin(panel) {
    // What comes before the answer `trained` is of the model before.
    Object.assign(panel, { epoch: 0, points: [], errors: [], view: null, loaded: '', about: null });
    target = 0;
    panel.worker.send('train', { settings: settings(panel) });
  }

  function reset() {
    setRunning(false);
    length = 8;
    for (const id of fields) if (element(id).value === '') element(id).value = usualFor(element('task').value)[id];
    typed = false;
    say(element('problem'), '');
    say(element('status'), 'ready');
    for (const panel of panels) begin(panel);
    look();
  }

  function look() {
    say(element('cValue'), element('c').value);
    for (const panel of panels) {
      // A typed input keeps its shape and grows with c.
      const row = typed && panel.view ? scaled(panel.about, panel.view.row, scale() / panel.view.scale) : null;
      panel.worker.send('look', { scale: scale(), sample, row });
    }
    redraw();
    onChange();
  }

  const problem = (panel, text) => {
    say(element('problem'), `${name(panel)}: ${text}`);
    setRunning(false);
  };

  const handlers = (panel) => ({
    trained({ about, loaded }) {
      panel.about = about;
      if (!loaded) return;
      Object.assign(panel, { epoch: Infinity, points: [], errors: [], view: null, loaded, expected: false });
      say(element('status'), `${about.architecture} model for ${about.task} loaded`);
      onChange();
      const other = panels.find((each) => each !== panel);
      if (other.expected) return;
      // A model that has been trained for the same task stays, and so do its settings.
      if (!other.loaded && other.epoch > 0 && other.about.task === about.task && other.about.length === about.length) return;
      showSettings();
      if (!other.loaded && isChoice('task', about.task)) {
        length = about.length;
        begin(other);
      }
    },
    progress({ epoch, points }) {
      if (panel.loaded || !panel.about) return;
      panel.epoch = epoch;
      panel.points.push(...points.map(({ step, loss }) => [step, loss]));
      if (panel.points.length > 2000) panel.points = panel.points.filter((_, i) => i % 2 === 0);
      const last = trainable().map((each) => each.points.at(-1) ?? [0, NaN]);
      say(element('status'), `${Math.min(...last.map(([step]) => step))} steps, ${last.length > 1 ? 'losses' : 'loss'} ${last.map(([, loss]) => number(loss)).join(' and ')}`);
      if (running) goOn();
    },
    errors({ errors }) {
      if (panel.about) panel.errors = errors.map(({ x, loss }) => [x, loss]);
    },
    view(view) {
      if (panel.about) panel.view = view;
    },
    saved({ bytes }) {
      panel.files.download(bytes, `${panel.about.task}-${panel.about.architecture}.safetensors`);
    },
    finished: (message) => problem(panel, message.problem || 'all epochs are done'),
    failed({ message, problem: refused }) {
      problem(panel, message);
      // What the library refuses has a problem; anything else may have broken the engine.
      if (refused === undefined) panel.worker.stop();
    },
  });

  const optionOf = ({ name: value, description }) => make('option', { value, textContent: value, title: description });
  const chosen = (id, options, value) => {
    element(id).replaceChildren(...options);
    element(id).value = value;
  };
  chosen('task', catalogue.tasks.filter((task) => task.letters || Object.keys(task.settings).length === 0).map(optionOf), 'cumulative-sum');
  const architectures = catalogue.architectures.filter(({ description }) => !description.startsWith('the same as'));
  const group = (label, holds) => make('optgroup', { label }, ...architectures.filter(({ broken_by: reason }) => (reason === '') === holds).map(optionOf));
  const groups = () => [group('attention does not see the scale', true), group('others', false)];
  chosen('first', groups(), 'positional');
  chosen('second', groups(), 'standard');
  const usual = Object.fromEntries(fields.map((id) => [id, element(id).value]));

  for (const panel of panels) {
    panel.title = make('h2');
    panel.text = make('p', { className: 'hint' });
    panel.maps = make('canvas', { className: 'maps', role: 'img',
      'aria-label': `Attention of the ${panel.place} model: a column of maps for each layer, one for each head; row i is what node i attends to` });
    panel.files = modelFiles(panel.place, (bytes, file) => panel.worker.send('load', { bytes, name: file }), () => panel.worker.send('save'));
    const section = element(`model-${panel.place}`);
    panel.arrows = make('div', { className: 'scroll' });
    section.append(panel.title, panel.text, make('div', { className: 'attention' }, panel.arrows, make('div', { className: 'scroll' }, panel.maps)));
    panel.filesOf = make('p');
    element('files').append(panel.filesOf, panel.files.element);
    panel.files.dropOn(section);
    const own = handlers(panel);
    const redrawn = Object.fromEntries(Object.entries(own).map(([type, body]) => [type, (message) => {
      body(message);
      redraw();
    }]));
    panel.worker = new EngineWorker(module, redrawn);
  }

  // Both places are told before either answers: none of them is to train for the other then.
  function loadGiven() {
    setRunning(false);
    givenModels.forEach(({ name: file, bytes }, i) => {
      panels[i].expected = true;
      panels[i].worker.send('load', { bytes: bytesOf(bytes), name: file });
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
  element('task').onchange = () => {
    suit();
    reset();
  };
  element('train-settings').onsubmit = (event) => event.preventDefault();
  element('c').oninput = look;
  element('another').onclick = () => {
    ++sample;
    typed = false;
    look();
  };
  // A file dropped next to its place must not replace the page.
  for (const type of ['dragover', 'drop']) window.addEventListener(type, (event) => event.preventDefault());
  window.addEventListener('resize', redraw);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);

  return {
    redraw,
    /** What a link has to say: not of models from files, which it cannot hold. */
    values: () => Object.fromEntries([...(trainable().length < panels.length ? [] : fields), 'c'].map((id) => [id, element(id).value])),
    /** Whether both models are trained with these settings. */
    has: (values) => trainable().length === panels.length && fields.every((id) => element(id).value === values[id]),
    /** Takes over settings by their names and starts anew; what is not a choice is left as it was. */
    apply(values) {
      for (const id of [...fields, 'c']) {
        const input = element(id);
        const possible = input.options ? [...input.options].some((option) => option.value === values[id]) : Number.isFinite(parseFloat(values[id]));
        if (values[id] !== undefined && possible) input.value = values[id];
        if (id === 'task') suit();
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
