// One engine in a worker: a model that trains, or a program. Messages in have a `type`:
//   init {module}                a compiled WebAssembly.Module             -> ready {catalogue}
//   train {settings}             starts anew, at rest                      -> trained {about}
//   pace {epoch}                 trains up to this epoch; 0: at rest       -> progress {points}, finished {problem}
//   look {scale, sample, row}    what to show; row: an input typed by hand -> view
//   compile {source, length, parameters, sharpness, noise, row}            -> compiled
//   load {bytes, name}, save {}                                            -> trained {about}, saved {bytes}
// and out also failed {message, problem, expected, hint, line, column, during}. While it trains it
// sends `errors` and `view` of its own accord. Training goes in slices, so that messages get in.
import { makeEngine } from '../wasm/engine.mjs';

const slice = 40;  // milliseconds
const betweenErrors = 400;
const scales = Array.from({ length: 10 }, (_, i) => i + 1);

let engine;
let model;
let program;
let epoch = 0;
let pace = 0;
let look = { scale: 1, sample: 0, row: null };
let lastErrors = 0;
let waiting = false;

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
}

function sendAll() {
  postMessage({ type: 'errors', errors: model.errors(`c=${scales.join(',')}`, 200) });
  sendView();
  lastErrors = performance.now();
}

function sendView() {
  const row = look.row ?? model.sample(look.scale, look.sample).row;
  postMessage({ type: 'view', row, ...model.answer(row), attention: model.attention(row), scale: look.scale });
}

function take(next) {
  model?.free();
  model = next;
  epoch = 0;
  pace = 0;
  postMessage({ type: 'trained', about: model.about });
  sendAll();
}

const handlers = {
  async init({ module }) {
    engine = await makeEngine(module, (text) => console.log(text));
    postMessage({ type: 'ready', catalogue: engine.catalogue() });
  },
  train: ({ settings }) => take(engine.train(settings)),
  load: ({ bytes, name }) => take(engine.load(bytes, name)),
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
  compile({ source, length, parameters = '', sharpness = 0, noise = 0, row }) {
    const next = engine.compile(source, length, { parameters, sharpness });
    program?.free();
    program = next;
    if (noise > 0) program.noise(noise);
    const input = row ?? program.draw(1);
    postMessage({ type: 'compiled', about: program.about, row: input, ...program.run(input),
      words: program.words(input), verified: program.verify(100) });
  },
};

onmessage = async ({ data }) => {
  try {
    await handlers[data.type](data);
  } catch (error) {
    guarded(data.type, () => { throw error; });
  }
};
