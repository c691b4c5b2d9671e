// The tab Algorithms: a program is compiled into weights in a worker, its rounds are drawn, and the
// network's numbers stand beside the program's.
import { EngineWorker } from './client.mjs';
import { element, make, number, oncePerFrame, say } from './dom.mjs';
import { makeEditor } from './editor.mjs';
import { drawRounds } from './rounds.mjs';
import { makeWords } from './words.mjs';

const afterTyping = 400;  // milliseconds
const own = '(own text)';
const realTolerance = 0.05;  // of the largest number; whole numbers are wrong where they round to another

/** `onReady(catalogue)` once the engine is there, `onChange()` when a setting changed. */
export function makeAlgorithms(module, onReady, onChange) {
  let about = null;
  let flow = null;
  let seed = 0;
  let timer = 0;
  let busy = false;
  let ready = false;
  let worker = null;

  const ask = (type, fields) => {
    if (about) worker.send(type, fields);
  };
  const step = () => Number(element('round').value);
  const at = (moment, processor, word) => {
    const place = 2 * ((moment * about.processors + processor) * about.words.length + word);
    const [program, network] = [flow.words[place], flow.words[place + 1]];
    const allowed = about.words[word].type === 'real' ? realTolerance * flow.largest : 0.5;
    return { program, network, wrong: Math.abs(network - program) > allowed };
  };

  // The first round after which the network holds something else than the program, 0 for none.
  function firstWrong() {
    for (let moment = 1; moment <= about.rounds.length; ++moment) {
      for (let processor = 0; processor < about.processors; ++processor) {
        if (about.words.some((_, word) => at(moment, processor, word).wrong)) return moment;
      }
    }
    return 0;
  }

  // How far the network is from the program at a moment, at most.
  function drift(moment) {
    let most = 0;
    for (let processor = 0; processor < about.processors; ++processor) {
      about.words.forEach((_, word) => {
        const { program, network } = at(moment, processor, word);
        if (!Number.isNaN(network)) most = Math.max(most, Math.abs(network - program));
      });
    }
    return most;
  }

  function roundText() {
    if (step() === 0) return 'Input: nothing has been computed yet.';
    const round = about.rounds[step() - 1];
    const lines = [...new Set(round.lines)].join(', ');
    const layers = round.layers.map((layer) => layer + 1).join(', ');
    const helps = round.origin >= 0 ? '; carries a message' : '';
    return `Round ${step()} of ${about.rounds.length}${lines ? `, line ${lines}` : ''}${layers ? `, layer ${layers}` : ''}${helps}: ${round.updates.join('; ') || 'only reads'}`;
  }

  const showWords = makeWords(element('words'), (row, stamp) => ask('input', { row, stamp }));

  function draw() {
    if (!about || !flow || element('algorithms').hidden) return;
    say(element('round-text'), roundText());
    const word = Number(element('word').value);
    drawRounds(element('diagram'), about, { step: step(), follow: Number(element('follow').value),
      at: (moment, processor) => at(moment, processor, word), drift,
      onPick(moment, processor) {
        element('follow').value = element('follow').value === String(processor) && step() === moment ? -1 : processor;
        element('round').value = moment;
        redraw();
      } });
    showWords(about, flow.row, flow.stamp, (processor, each) => at(step(), processor, each));
    const wrong = firstWrong();
    const noise = Number(element('noise').value);
    say(element('failure'), wrong ? `✗ Round ${wrong} is the first to fail${about.rounds[wrong - 1].lines.length ? ` (line ${[...new Set(about.rounds[wrong - 1].lines)].join(', ')})` : ''}.`
      : `✓ After every round the network holds the program's words${noise > 0 ? ', up to 5 %' : ''}.`);
  }
  const redraw = oncePerFrame(draw);

  function setBusy(doing) {
    busy = doing !== '';
    element('stop').disabled = !busy;
    if (busy) say(element('program-status'), doing);
  }

  // A new engine knows of no program.
  function restart() {
    ready = false;
    about = null;
    worker.stop();
  }

  function compile() {
    clearTimeout(timer);
    // One compile at a time: what was typed meanwhile replaces it.
    if (busy && ready) restart();
    setBusy('compiling …');
    say(element('verified'), '');
    if (ready) sendCompile();
    onChange();
  }
  function sendCompile() {
    worker.send('compile', { source: editor.value(), length: Number(element('n').value), parameters: element('parameters').value.trim(),
      sharpness: Number(element('sharpness').value), noise: Number(element('noise').value) });
  }

  const editor = makeEditor(element('editor'), 'editor-title', () => {
    element('program').value = own;
    clearTimeout(timer);
    timer = setTimeout(compile, afterTyping);
  });

  const describe = () => say(element('program-status'), `${about.rounds.length} rounds, ${about.depth} layers, ${about.heads} heads, width ${about.width}, ${about.weights} weights`
    + (about.warnings.length ? `. ${about.warnings.join(' ')}` : ''));

  const handlers = {
    ready({ catalogue }) {
      const first = element('program').options.length === 0;
      ready = true;
      if (first) {
        element('program').replaceChildren(...catalogue.programs.map(({ name, description }) => make('option', { value: name, textContent: name, title: description })),
          make('option', { value: own, textContent: own }));
        element('program').value = 'sort';
        onReady(catalogue);
      } else if (busy) {
        sendCompile();
      }
    },
    programText({ text }) {
      editor.set(text);
      compile();
    },
    compiled(message) {
      about = message.about;
      flow = null;
      editor.clear();
      element('round').max = about.rounds.length;
      element('word').replaceChildren(...about.words.map(({ name }, i) => make('option', { value: i,
        textContent: about.words.findIndex((word) => word.name === name) === i ? name : `${name} (word ${i})` })));
      element('word').value = about.outputs[0];
      element('follow').replaceChildren(make('option', { value: -1, textContent: 'nobody' }),
        ...Array.from({ length: about.processors }, (_, i) => make('option', { value: i, textContent: `processor ${i}` })));
    },
    flow(message) {
      setBusy('');
      flow = message;
      describe();
      redraw();
    },
    verified({ holds, scales, counter_example: example }) {
      setBusy('');
      describe();
      const tried = scales.map(({ c, samples, mismatches }) => `c = ${c}: ${samples - mismatches} of ${samples} right`).join('; ');
      say(element('verified'), `${holds ? '✓ The network is the program.' : '✗ It is not the program any more.'} ${tried}.`
        + (example ? ` For ${Array.from(example.input, number).join(' ')} it finds ${Array.from(example.found, number).join(' ')}.` : ''));
    },
    failed({ during, ...error }) {
      setBusy('');
      // What the library refuses has a problem; anything else may have broken the engine.
      if (error.problem === undefined) restart();
      if (during === 'compile') {
        editor.fail(error);
        say(element('program-status'), 'not compiled');
      } else {
        say(element('program-status'), error.message);
      }
    },
  };
  worker = new EngineWorker(module, handlers);

  const choose = () => {
    if (busy) {
      setBusy('');
      restart();
    }
    worker.send('programText', { name: element('program').value });
  };
  element('program').onchange = () => {
    if (element('program').value === own) return;
    element('parameters').value = '';
    element('round').value = 0;
    choose();
  };
  element('compile').onclick = compile;
  element('stop').onclick = () => {
    setBusy('');
    say(element('program-status'), 'stopped; press Compile to go on');
    say(element('verified'), '');
    restart();
  };
  element('program-settings').onsubmit = (event) => {
    event.preventDefault();
    compile();
  };
  for (const id of ['n', 'parameters', 'sharpness']) element(id).onchange = compile;
  for (const id of ['round', 'word', 'follow']) element(id).oninput = redraw;
  const move = (by) => () => {
    element('round').value = step() + by;
    redraw();
  };
  element('back').onclick = move(-1);
  element('forward').onclick = move(1);
  element('noise').oninput = () => {
    showNoise();
    say(element('verified'), '');
    ask('noise', { noise: Number(element('noise').value) });
    onChange();
  };
  const showNoise = () => say(element('noiseValue'), `${Number((100 * element('noise').value).toFixed(1))} %`);
  element('verify').onclick = () => {
    if (!about) return;
    setBusy('verifying …');
    say(element('verified'), '');
    ask('verify', { samples: 100 });
  };
  element('draw').onclick = () => ask('draw', { seed: ++seed });

  return {
    redraw,
    values() {
      const program = element('program').value;
      const fields = Object.fromEntries(['program', 'n', 'parameters', 'sharpness', 'noise'].map((id) => [id, element(id).value]));
      return program === own ? { ...fields, source: editor.value() } : fields;
    },
    /** Takes over settings by their names and compiles. */
    apply(values) {
      for (const id of ['program', 'n', 'parameters', 'sharpness', 'noise']) if (values[id] !== undefined) element(id).value = values[id];
      showNoise();
      element('round').value = 0;
      if (values.source !== undefined) {
        element('program').value = own;
        editor.set(values.source);
        compile();
        return;
      }
      if (element('program').selectedIndex < 0 || element('program').value === own) element('program').value = 'sort';
      choose();
    },
  };
}
