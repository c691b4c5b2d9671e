// The tab Tour: seven scenes that set the other tabs up, each with one thing to do.
import { element, make } from './dom.mjs';

const program = (name, fields = {}) => ({ program: name, n: '8', noise: '0', sharpness: '0', parameters: '', level: 'network', ...fields });
const range = { task: 'cumulative-sum', first: 'positional', second: 'standard', width: '16', depth: '4', blocks: 'plain', lr: '0.002', seed: '0' };
// `about` stands in the list, where nothing has been set up; `now` above what the scene shows.
const scenes = [
  { title: 'Why attention by position', tab: 'algorithms', set: program('cumulative-sum'),
    about: 'Three rounds of additions give all running sums of eight numbers. Which numbers are added depends on positions alone.',
    now: 'Each row is a processor, one node of the Transformer. A line shows who reads from whom: processor i reads from i − 1, then i − 2, then i − 4, and adds.',
    todo: 'Change an input in the table. The numbers change, but the lines stay.' },
  { title: 'The range experiment', tab: 'train', set: range, scale: 1, run: true,
    about: 'Two models learn running sums of numbers in [−2, 2]. Then both are tested on numbers up to ten times larger.',
    now: 'Both models are learning running sums of numbers in [−2, 2]. In the positional one attention depends on positions alone, in the standard one on the numbers.',
    todo: 'Wait until both losses are below 0.1. Then drag c to 10, for numbers ten times larger. Whose error runs away?' },
  { title: 'What the heads learned', tab: 'train', set: range, keep: true, scale: 10, run: true,
    about: 'Attention maps show which nodes each node attends to. Larger numbers change them in one of the models.',
    now: 'Each map is one attention head. Larger numbers cannot change the maps of the positional model, which never sees them. Those of the standard model change.',
    todo: 'Move c between 1 and 10 and watch the maps. “Attention moved” stays 0 % for the positional model.' },
  { title: 'The compiled sort', tab: 'algorithms', set: program('sort'),
    about: 'Nobody trained this model. A sorting network is written as a program, and compiled into the weights of a positional Transformer.',
    now: 'This Transformer was not trained. Its weights are compiled from the program shown here, a sorting network. It sorts numbers of any size.',
    todo: 'Step through the rounds with ▶, follow a processor, then press Verify.' },
  { title: 'Noise', tab: 'algorithms', set: program('sort', { noise: '0.004' }),
    about: 'Compiled weights are exact. What happens when each of them is off by a fraction of a percent?',
    now: 'Each weight of the compiled sort has noise of 0.4 %. The lines stay as they are, but each round adds its error to those before it.',
    todo: 'Move the noise, and watch ± grow from round to round. Which round is the first to fail?' },
  { title: 'The limits: k-hop', tab: 'algorithms', set: program('k-hop', { parameters: 'K=1,q=3', level: 'written', round: '99', input: '1,1,2,1,1,1,3,1,2,1,1,1,2,1,3,1' }),
    about: 'In k-hop the letters decide which node to read from. Attention by position then has to read from every node.',
    now: 'Each processor looks for the last earlier copy of its own letter, and asks what came after it. So the letters decide who reads from whom.',
    todo: 'Change a letter in the table: the last lines move. Then set “Shown” to fixed lines: every processor has to read from every other.' },
  { title: 'Two streams', tab: 'train', set: { task: 'recall', seed: '0' }, scale: 1, run: true,
    about: 'Symbols route, values flow: letters say where to read, numbers say what is read. A model that keeps both apart reads the same nodes whatever the numbers.',
    now: 'Every node holds a letter and a number, and node 0 asks for the number of one letter. In two-streams letters alone decide whom it reads. In the standard model letters and numbers decide together.',
    todo: 'Wait until both losses are below 0.01, then drag c to 10. Whose arrows move? Then type another letter for node 0.' },
];

/** `go(scene)` sets the page up for one and shows its tab. */
export function makeTour(go) {
  const card = element('scene');
  const start = (index) => {
    const scene = scenes[index];
    go(scene);
    const button = (text, to) => make('button', { type: 'button', textContent: text, disabled: to < 0 || to >= scenes.length, onclick: () => start(to) });
    card.replaceChildren(make('div', {}, make('strong', { textContent: `${index + 1} of ${scenes.length}: ${scene.title}. ` }), scene.now,
      make('p', { className: 'todo', textContent: `▸ ${scene.todo}` })),
    make('div', { className: 'controls' }, button('Back', index - 1), button('Next', index + 1),
      make('button', { type: 'button', textContent: 'End the tour', onclick: () => { card.hidden = true; } })));
    card.hidden = false;
    card.scrollIntoView({ block: 'nearest' });
  };
  element('scenes').replaceChildren(...scenes.map((scene, i) => make('li', {}, make('h3', { textContent: scene.title }), make('p', { textContent: scene.about }),
    make('button', { type: 'button', className: i === 0 ? 'main' : '', textContent: `Set up: ${scene.title}`, onclick: () => start(i) }))));
}
