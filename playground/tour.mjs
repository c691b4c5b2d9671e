// The tab Tour: six scenes, each one sentence and one thing to do, that set the other tabs up.
import { element, make } from './dom.mjs';

const program = (name, fields = {}) => ({ program: name, n: '8', noise: '0', sharpness: '0', parameters: '', level: 'network', ...fields });
const scenes = [
  { title: 'Why attention by position', tab: 'algorithms', set: program('cumulative-sum'),
    sentence: 'To have all running sums, every place reads the places 1, 2 and 4 before it and adds: which places those are never depends on the numbers.',
    todo: 'Change an input in the table below: other numbers flow, but the lines stay where they are.' },
  { title: 'The range experiment', tab: 'train', set: { task: 'cumulative-sum', first: 'positional', second: 'standard', width: '16', depth: '4', lr: '0.002', seed: '0', c: '1' }, run: true,
    sentence: 'Both models are now learning running sums of numbers in [−2, 2]; the positional one decides by places alone whom each node reads, the standard one by looking at the numbers.',
    todo: 'Wait until both losses are below 0.1, then drag c to 10, which makes the test numbers ten times larger: whose error runs away?' },
  { title: 'What the heads learned', tab: 'train', scale: 10, run: true,
    sentence: 'The maps show who reads whom: larger numbers cannot change those of the positional model, which never sees them, but the standard model now looks in other places than it learned to.',
    todo: 'Move c between 1 and 10 and watch the maps: “attention moved” is 0 % for the model that holds.' },
  { title: 'The compiled sort', tab: 'algorithms', set: program('sort'),
    sentence: 'Nothing was trained here: a sorting network was written as a program and compiled into the weights of a positional Transformer, which sort numbers of any size.',
    todo: 'Step through the rounds with ▶, follow a processor, then press Verify.' },
  { title: 'Noise', tab: 'algorithms', set: program('sort', { noise: '0.004' }),
    sentence: 'Such weights must be exact: with a little noise on each the lines stay as they are, but every round adds its own error to what it was given.',
    todo: 'Move the noise, watch ± grow from round to round, and read which round is the first to fail.' },
  { title: 'The limits: k-hop', tab: 'algorithms', set: program('k-hop', { parameters: 'K=1,q=3', level: 'written', round: '99', input: '1,1,2,1,1,1,3,1,2,1,1,1,2,1,3,1' }),
    sentence: 'Places are not always enough: here each place asks what followed the last earlier copy of its own letter, so whom to read depends on the letters.',
    todo: 'Change a letter in the table and watch the last lines go elsewhere; then set “Shown” to fixed lines: a network that may not look at the letters has everybody read everybody.' },
];

/** `go(scene)` sets the page up for one and shows its tab. */
export function makeTour(go) {
  const card = element('scene');
  const start = (index) => {
    const scene = scenes[index];
    go(scene);
    const button = (text, to) => make('button', { type: 'button', textContent: text, disabled: to < 0 || to >= scenes.length, onclick: () => start(to) });
    card.replaceChildren(make('strong', { textContent: `${index + 1} of ${scenes.length}: ${scene.title}. ` }), scene.sentence, make('p', { className: 'todo', textContent: `▸ ${scene.todo}` }),
      make('div', { className: 'controls' }, button('Back', index - 1), button('Next', index + 1),
        make('button', { type: 'button', textContent: 'End the tour', onclick: () => { card.hidden = true; } })));
    card.hidden = false;
    card.scrollIntoView({ block: 'nearest' });
  };
  element('tour').replaceChildren(make('p', { textContent: 'Six scenes, five minutes: why one kind of Transformer still adds up numbers ten times larger than any it has seen, and another does not. Each sets the page up; you do one thing.' }),
    make('ol', { className: 'scenes' }, ...scenes.map((scene, i) => make('li', {}, make('h2', { textContent: scene.title }), make('p', { textContent: scene.sentence }),
      make('button', { type: 'button', textContent: `Set up: ${scene.title}`, onclick: () => start(i) })))));
}
