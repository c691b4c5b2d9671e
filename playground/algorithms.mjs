// The tab Algorithms: a program is compiled into weights in a worker, its rounds are drawn, and the
// network's numbers and the program's are shown together.
import { EngineWorker } from './client.mjs';
import { element, make, number, oncePerFrame, plural, say } from './dom.mjs';
import { makeEditor } from './editor.mjs';
import { givenProgram } from './given.mjs';
import { lettersOf } from './letters.mjs';
import { momentsOf } from './moments.mjs';
import { drawRounds } from './rounds.mjs';
import { makeWords } from './words.mjs';

const afterTyping = 400;  // milliseconds
const mostFormula = 80;  // characters
const own = '(own text)';
const carried = '(of this page)';
const settings = ['program', 'n', 'parameters', 'sharpness', 'noise', 'level'];

/** `onReady(catalogue)` once the engine is there, `onChange()` when a setting changed. */
export function makeAlgorithms(module, onReady, onChange) {
  let about = null;
  let flow = null;
  let letters = null;
  let wantedRound = 0;  // once the program has been compiled; beyond the last: that one
  let typed = null;  // an input given by hand or by a link
  let moments = null;  // of about and flow, at the level that is shown
  let seed = 0;
  let timer = 0;
  let busy = false;
  let ready = false;
  let worker = null;

  const ask = (type, fields) => {
    if (about) worker.send(type, fields);
  };
  const step = () => Number(element('round').value);
  const named = (name, numbers) => (numbers.length === 0 ? '' : `${name}${numbers.length > 1 ? 's' : ''} ${numbers.join(', ')}`);
  const linesOf = (round) => [...new Set(round.lines)];
  function roundText() {
    if (step() === 0) return 'Input: nothing has been computed yet.';
    const round = moments.rounds[step() - 1];
    const helps = round.origin >= 0 ? '; carries a message' : '';
    // A long formula is better read in the program, whose lines are marked.
    const formulas = round.updates.join('; ');
    const says = formulas.length === 0 ? ': only reads' : formulas.includes('…') || formulas.length > mostFormula ? '' : `: ${formulas}`;
    return `Round ${step()} of ${moments.rounds.length}${[named('line', linesOf(round)), named('layer', round.layers ?? [])].map((part) => part && `, ${part}`).join('')}${helps}${says}`;
  }

  const showWords = makeWords(element('words'), (row, stamp) => {
    typed = row;
    ask('input', { row, stamp });
    onChange();
  });

  function draw() {
    if (!moments || element('algorithms').hidden) return;
    say(element('round-text'), roundText());
    editor.mark(step() === 0 ? [] : linesOf(moments.rounds[step() - 1]));
    showWords(about, moments, letters, flow, step());  // first, for its width decides that of the drawing
    const word = Number(element('word').value);
    drawRounds(element('diagram'), moments, { step: step(), follow: Number(element('follow').value), word,
      text: (each, value) => letters.text(moments.words, each, value),
      onPick(moment, processor) {
        element('follow').value = element('follow').value === String(processor) && step() === moment ? -1 : processor;
        element('round').value = moment;
        redraw();
      } });
    say(element('failure'), verdict());
  }
  function verdict() {
    if (moments.written) return 'Messages as the program sends them: change the input, and they go elsewhere.';
    const wrong = moments.firstWrong();
    if (!wrong) return `✓ After every round the network holds the program's words${Number(element('noise').value) > 0 ? ', up to 5 %' : ''}.`;
    const lines = named('line', linesOf(about.rounds[wrong - 1]));
    return `✗ Round ${wrong} is the first to fail${lines && ` (${lines})`}.`;
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
    moments = null;
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
      sharpness: Number(element('sharpness').value), noise: Number(element('noise').value), row: typed });
  }

  const editor = makeEditor(element('editor'), 'editor-title', () => {
    element('program').value = own;
    clearTimeout(timer);
    timer = setTimeout(compile, afterTyping);
  });

  const fill = (id, options) => element(id).replaceChildren(...options.map((each) => make('option', each)));
  function update() {
    if (!flow) return;
    moments = momentsOf(about, flow, Boolean(about.written) && element('level').value === 'written');
    redraw();
  }
  // Rounds and words of another program, or of the same one at another level.
  function setLevel() {
    update();
    if (!moments) return;
    const { words, rounds, outputs } = moments;
    element('round').max = rounds.length;
    fill('word', words.map(({ name }, i) => ({ value: i, textContent: words.findIndex((word) => word.name === name) === i ? name : `${name} (word ${i})` })));
    element('word').value = outputs[0];
  }

  function describe() {
    const rounds = about.rounds.length;
    const both = about.written ? `${plural(about.written.rounds.length, 'round')} as written, ${rounds} in the network` : plural(rounds, 'round');
    say(element('program-status'), `${both}; ${plural(about.depth, 'layer')}, ${plural(about.heads, 'head')}, width ${about.width}, ${plural(about.weights, 'weight')}`
      + (about.warnings.length ? `. ${about.warnings.join(' ')}` : ''));
  }

  const handlers = {
    ready({ catalogue }) {
      const first = element('program').options.length === 0;
      ready = true;
      if (first) {
        const ofPage = givenProgram ? [make('option', { value: carried, textContent: `${givenProgram.name} ${carried}` })] : [];
        element('program').replaceChildren(...ofPage, ...catalogue.programs.map(({ name, description }) => make('option', { value: name, textContent: name, title: description })),
          make('option', { value: own, textContent: own }));
        element('program').value = standard;
        if (givenProgram) takeGiven();
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
      moments = null;
      letters = lettersOf(about, editor.value());
      editor.clear();
      element('level-label').hidden = !about.written;
      fill('follow', [{ value: -1, textContent: 'nobody' }, ...Array.from({ length: about.processors }, (_, i) => ({ value: i, textContent: `processor ${i}` }))]);
      element('follow').value = -1;
    },
    flow(message) {
      setBusy('');
      const first = flow === null;
      flow = message;
      describe();
      if (first) setLevel();
      else update();
      if (wantedRound > 0) element('round').value = wantedRound;
      wantedRound = 0;
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

  const standard = givenProgram ? carried : 'sort';
  function takeGiven() {
    element('n').value = givenProgram.n;
    element('parameters').value = givenProgram.parameters;
  }
  const choose = () => {
    if (busy) {
      setBusy('');
      restart();
    }
    if (element('program').value === carried) {
      editor.set(givenProgram.text);
      compile();
      return;
    }
    worker.send('programText', { name: element('program').value });
  };
  element('program').onchange = () => {
    if (element('program').value === own) return;
    element('parameters').value = '';
    element('round').value = 0;
    typed = null;
    if (element('program').value === carried) takeGiven();
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
  element('level').onchange = () => {
    element('round').value = 0;
    setLevel();
    onChange();
  };
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
  element('draw').onclick = () => {
    typed = null;
    ask('draw', { seed: ++seed });
    onChange();
  };

  return {
    redraw,
    values() {
      const program = element('program').value;
      const fields = Object.fromEntries(settings.map((id) => [id, element(id).value]));
      if (typed) fields.input = typed.join(',');
      return program === own ? { ...fields, source: editor.value() } : fields;
    },
    /** Takes over settings by their names and compiles. */
    apply(values) {
      for (const id of settings) if (values[id] !== undefined) element(id).value = values[id];
      wantedRound = Number(values.round ?? 0);
      typed = values.input ? values.input.split(',').map(Number) : null;
      showNoise();
      element('round').value = 0;
      if (values.source !== undefined) {
        element('program').value = own;
        editor.set(values.source);
        compile();
        return;
      }
      if (element('program').selectedIndex < 0 || element('program').value === own) element('program').value = standard;
      choose();
    },
  };
}
