// The rounds of a program as a drawing: processors below each other, time to the right, a line from
// whom each processor reads. What feeds the followed processor is drawn thicker.
import { number } from './dom.mjs';
import { svg } from './svg.mjs';

const across = 88;
const half = 33;
const node = 29;
const down = 34;
const top = 26;
const bottom = 22;
const mostDrawn = 64;

/** For each moment from 0 to `step` the processors whose words `processor` may depend on at `step`. */
function ancestors(moments, processor, step) {
  const sets = Array.from({ length: moments.rounds.length + 1 }, () => new Set());
  if (processor < 0) return sets;
  sets[step].add(processor);
  for (let round = step; round > 0; --round) {
    for (const i of sets[round]) {
      sets[round - 1].add(i);
      for (const source of moments.reads(round - 1, i)) sets[round - 1].add(source);
    }
  }
  return sets;
}

/** `moments` (moments.mjs) with the word to show and text(word, value); before the first round that is the input. onPick(moment, processor). */
export function drawRounds(place, moments, { step, follow, word, text, onPick }) {
  const { rounds, processors } = moments;
  if (processors > mostDrawn) {
    place.textContent = `${processors} processors are too many to draw; the table below has their words.`;
    return;
  }
  const width = (rounds.length + 1) * across;
  const height = processors * down + top + bottom;
  const drawing = svg('svg', { width, height, viewBox: `0 0 ${width} ${height}`, role: 'img',
    'aria-label': `${rounds.length} rounds of ${processors} processors, round ${step} shown` });
  const middle = (moment, processor) => [moment * across + half, top + processor * down + down / 2];
  const shownWord = (moment) => (moment === 0 && Number.isNaN(moments.at(0, 0, word).program) ? moments.inputs[0] : word);
  const fed = ancestors(moments, follow, step);
  drawing.append(svg('rect', { class: 'now', x: step * across, y: 0, width: 2 * half, height, rx: 6 }));
  for (let moment = 0; moment <= rounds.length; ++moment) {
    drawing.append(svg('text', { x: moment * across + half, y: 16, class: 'moment' }, moment === 0 ? 'input' : String(moment)));
    if (moments.written) continue;
    drawing.append(svg('text', { x: moment * across + half, y: height - 6, class: 'moment' }, `± ${number(moments.drift(moment))}`));
  }
  rounds.forEach((round, r) => {
    for (let i = 0; i < processors; ++i) {
      for (const source of moments.reads(r, i)) {
        if (source === i) continue;
        const [x1, y1] = middle(r, source);
        const [x2, y2] = middle(r + 1, i);
        const kind = fed[r + 1].has(i) ? 'line fed' : `line${r + 1 === step ? ' current' : ''}`;
        drawing.append(svg('line', { x1: x1 + node, y1, x2: x2 - node, y2, class: kind }));
      }
      const [x1, y] = middle(r, i);
      drawing.append(svg('line', { x1: x1 + node, y1: y, x2: x1 + across - node, y2: y, class: fed[r + 1].has(i) ? 'own fed' : 'own' }));
    }
  });
  for (let moment = 0; moment <= rounds.length; ++moment) {
    for (let i = 0; i < processors; ++i) {
      const [x, y] = middle(moment, i);
      const { program, network, wrong } = moments.at(moment, i, shownWord(moment));
      const group = svg('g', { class: `node${wrong ? ' wrong' : ''}${fed[moment].has(i) ? ' fed' : ''}` });
      const shown = text(shownWord(moment), Number.isNaN(network) ? program : network);
      group.append(svg('rect', { x: x - node, y: y - 12, width: 2 * node, height: 24, rx: 12 }),
        svg('text', { x, y: y + 4 }, `${wrong ? '✗' : ''}${shown}`),
        svg('title', {}, `processor ${i}, ${moment === 0 ? 'input' : `after round ${moment}`}: program ${text(shownWord(moment), program)}${moments.written ? '' : `, network ${Number.isNaN(network) ? 'does not hold it' : network}`}`));
      group.onclick = () => onPick(moment, i);
      drawing.append(group);
    }
  }
  const { scrollLeft } = place;
  place.replaceChildren(drawing);
  const x = step * across;
  place.scrollLeft = x < scrollLeft || x + 2 * half > scrollLeft + place.clientWidth ? x - place.clientWidth / 2 : scrollLeft;
}
