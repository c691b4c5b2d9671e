// One engine in a worker: a model that trains, or a program. Messages in have a `type`:
//   init {module}                a compiled WebAssembly.Module             -> ready {catalogue}
//   train {settings}             starts anew, at rest                      -> trained {about}
//   pace {epoch}                 trains up to this epoch; 0: at rest       -> progress {epoch, points}, finished {problem}
//   look {scale, sample, row, stamp}  what to show; row: an input typed by hand -> view {..., stamp}
//   load {bytes, name}, save {}                                            -> trained {about, loaded: name}, saved {bytes}
//   programText {name}                                                     -> programText {name, text}
//   compile {source, length, parameters, sharpness, noise, row}                -> compiled {about}, flow
//   input {row, stamp}, noise {noise}                                      -> flow {row, words, trace, largest, stamp}
//   draw {seed}, verify {samples}                                          -> flow, verified
// and out also failed {message, problem, expected, hint, line, column, during}. While it trains it
// sends `errors` and `view` of its own accord. A stamp comes back with the first answer that knows the input. Training goes in slices, so that messages get in.
import { makeEngine } from '../wasm/engine.mjs';
import { openingInput } from './opening.mjs';
import { scaled } from './row.mjs';

const slice = 40;  // milliseconds
const betweenErrors = 400;
const scales = Array.from({ length: 10 }, (_, i) => i + 1);
const samples = 200;

let engine;
let started;  // a promise: the engine is there
let catalogue;
let model;
let program;
let programRow;
let programStamp = 0;
let epoch = 0;
let pace = 0;
let look = { scale: 1, sample: 0, row: null, stamp: 0 };
let lastErrors = 0;
let waiting = false;
let atRest = 0;

// A message to oneself comes after those that are waiting.
const channel = new MessageChannel();
channel.port1.onmessage = () => {
  waiting = false;
  guarded('train', train);
};
function goOn() {
  if (waiting || !model || epoch >= pace) return;
  waiting = true;
  channel.port2.postMessage(0);
}

function guarded(during, body) {
  try {
    body();
  } catch (error) {
    const { message, problem, expected, hint, line, column } = error;
    postMessage({ type: 'failed', during, message, problem, expected, hint, line, column });
  }
}

function train() {
  if (!model) return;
  const start = performance.now();
  const points = [];
  while (epoch < pace && performance.now() - start < slice) {
    const { epochs, problem } = model.advance(0);
    if (epochs.length === 0) {
      pace = 0;
      postMessage({ type: 'finished', problem });
      break;
    }
    epoch = epochs[0].epoch;
    points.push({ step: epochs[0].step, loss: epochs[0].loss });
  }
  if (points.length > 0) postMessage({ type: 'progress', epoch, points });
  if (performance.now() - lastErrors > betweenErrors) sendAll();
  goOn();
  // The last words, once no more is asked for.
  clearTimeout(atRest);
  if (!waiting) atRest = setTimeout(() => guarded('look', sendAll), betweenErrors / 4);
}

const scalable = () => catalogue.tasks.some(({ name, axes }) => name === model.about.task && axes.some((axis) => axis.name === 'c'));

function sendAll() {
  if (scalable()) postMessage({ type: 'errors', errors: model.errors(`c=${scales.join(',')}`, samples) });
  sendView();
  lastErrors = performance.now();
}

// How far attention is from that of the same input at c = 1: the part of its weight that lies elsewhere.
function moved(row, attention) {
  const before = model.attention(scaled(model.about, row, 1 / look.scale));
  let difference = 0;
  let whole = 0;  // of shares: the number of rows
  attention.forEach((weight, i) => {
    difference += Math.abs(weight - before[i]);
    whole += Math.abs(before[i]);
  });
  return (0.5 * difference) / whole;
}

function sendView() {
  const row = look.row ? Float64Array.from(look.row) : model.sample(look.scale, look.sample).row;
  const attention = model.attention(row);
  postMessage({ type: 'view', row, ...model.answer(row), attention, scale: look.scale, stamp: look.stamp,
    error: scalable() ? model.errors(`c=${look.scale}`, samples)[0].loss : NaN,
    moved: model.about.data_columns > 0 ? moved(row, attention) : NaN });
}

function take(next, loaded) {
  clearTimeout(atRest);
  model?.free();
  model = next;
  epoch = 0;
  pace = 0;
  look.row = null;
  postMessage({ type: 'trained', about: model.about, loaded });
  sendAll();
}

function sendFlow() {
  const words = program.words(programRow);
  let largest = 1;
  for (let i = 0; i < words.length; i += 2) largest = Math.max(largest, Math.abs(words[i]));
  const trace = program.about.written ? program.trace(programRow) : null;
  postMessage({ type: 'flow', row: programRow, words, trace, largest, stamp: programStamp });
}

const handlers = {
  init({ module }) {
    started = makeEngine(module, (text) => console.log(text)).then((made) => {
      engine = made;
      catalogue = engine.catalogue();
      postMessage({ type: 'ready', catalogue });
    });
    return started;
  },
  train: ({ settings }) => take(engine.train(settings), ''),
  load: ({ bytes, name }) => take(engine.load(bytes, name), name),
  save: () => postMessage({ type: 'saved', bytes: model.save() }),
  pace(message) {
    pace = message.epoch;
    goOn();
  },
  look(message) {
    look = { ...look, ...message };
    if (model) sendView();
  },
  programText: ({ name }) => postMessage({ type: 'programText', name, text: engine.programText(name) }),
  compile({ source, length, parameters = '', sharpness = 0, noise = 0, row = null }) {
    const next = engine.compile(source, length, { parameters, sharpness });
    program?.free();
    program = next;
    if (noise > 0) program.noise(noise);
    postMessage({ type: 'compiled', about: program.about });
    programRow = openingInput(program.about, program.draw(1));
    // An input that was given stays as long as it fits the program.
    if (row?.length === programRow.length && row.every(Number.isFinite)) programRow = row;
    sendFlow();
  },
  input({ row, stamp }) {
    programRow = row;
    programStamp = stamp;
    sendFlow();
  },
  noise({ noise }) {
    program.noise(noise);
    sendFlow();
  },
  draw({ seed }) {
    programRow = program.draw(1, seed);
    sendFlow();
  },
  verify: (message) => postMessage({ type: 'verified', ...program.verify(message.samples) }),
};

onmessage = async ({ data }) => {
  try {
    if (data.type !== 'init') await started;
    await handlers[data.type](data);
  } catch (error) {
    guarded(data.type, () => { throw error; });
  }
};
