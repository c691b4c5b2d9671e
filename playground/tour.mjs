// The tab Tour: six scenes, each one sentence and one thing to do, that set the other tabs up.
import { element, make } from './dom.mjs';

const scenes = [
  { title: 'Why attention by position', tab: 'algorithms', set: { program: 'cumulative-sum', n: '8', noise: '0', sharpness: '0', parameters: '' },
    sentence: 'To add up numbers, who has to read whom depends on places alone: here processor i reads the one 1, 2 and 4 places before it.',
    todo: 'Change an input in the table: the numbers flow differently, the lines stay where they are.' },
  { title: 'The range experiment', tab: 'train', set: { task: 'cumulative-sum', first: 'positional', second: 'standard', width: '16', depth: '4', lr: '0.002', seed: '0', c: '1' }, run: true,
    sentence: 'Both models learn the same sums of numbers in [−2, 2], step by step, and at c = 1 they are about equally good.',
    todo: 'Wait until both losses are below 0.1, then move c to 10 and see whose error runs away.' },
  { title: 'What the heads learned', tab: 'train', scale: 10, run: true,
    sentence: 'Larger numbers cannot change whom a positional head reads, since it never sees them; the standard head computes it from them.',
    todo: 'Move c between 1 and 10 and compare the maps: “attention moved” is 0 % for one model and not for the other.' },
  { title: 'The compiled sort', tab: 'algorithms', set: { program: 'sort', n: '8', noise: '0', sharpness: '0', parameters: '' },
    sentence: 'Nothing was trained here: a sorting network was written as a program and compiled into exact weights, right for numbers of any size.',
    todo: 'Step through the rounds with ▶, follow a processor, then press Verify.' },
  { title: 'Noise', tab: 'algorithms', set: { program: 'sort', n: '8', noise: '0.004', sharpness: '0', parameters: '' },
    sentence: 'With noise on every weight, who reads whom stays as it is, but each round adds its own error to what it was given.',
    todo: 'Move the noise, watch ± grow from round to round, and read which round is the first to fail.' },
  { title: 'The limits: k-hop', tab: 'algorithms', set: { program: 'k-hop', n: '8', noise: '0', sharpness: '0', parameters: '' },
    sentence: 'Here whom to read depends on the letters, which attention from data can look up; by position it takes sorting and messages over fixed lines, in many rounds.',
    todo: 'Set the length to 16 and see how many rounds the program needs now.' },
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
  element('tour').replaceChildren(make('p', { textContent: 'Six scenes, five minutes. Each sets the page up; you do one thing.' }),
    make('ol', { className: 'scenes' }, ...scenes.map((scene, i) => make('li', {}, make('h2', { textContent: scene.title }), make('p', { textContent: scene.sentence }),
      make('button', { type: 'button', textContent: `Set up: ${scene.title}`, onclick: () => start(i) })))));
}
