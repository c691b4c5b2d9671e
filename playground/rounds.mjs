// The rounds of a program as a drawing: processors below each other, time to the right, a line from
// whom each processor reads. What feeds the followed processor is drawn thicker.
import { number } from './dom.mjs';

const across = 100;
const half = 33;
const node = 29;
const down = 34;
const top = 26;
const bottom = 22;
const mostDrawn = 64;

const svg = (tag, attributes, text = '') => {
  const made = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.textContent = text;
  return made;
};

/** For each receive: who processor i reads, a list. */
const sourcesOf = (receive, i, processors) => {
  if (receive.sources) return receive.sources[i] < processors ? [receive.sources[i]] : [];
  return Array.from({ length: processors }, (_, j) => j);  // weighted: everybody
};

/** For each moment from 0 to `step` the processors whose words `processor` may depend on at `step`. */
export function ancestors(about, processor, step) {
  const sets = Array.from({ length: about.rounds.length + 1 }, () => new Set());
  if (processor < 0) return sets;
  sets[step].add(processor);
  for (let round = step; round > 0; --round) {
    for (const i of sets[round]) {
      sets[round - 1].add(i);
      for (const receive of about.rounds[round - 1].receives) {
        for (const source of sourcesOf(receive, i, about.processors)) sets[round - 1].add(source);
      }
    }
  }
  return sets;
}

/** `at(moment, processor)` gives {program, network, wrong} of the shown word, drift(moment) the
 * largest difference of any word; onPick(moment, processor). */
export function drawRounds(place, about, { step, follow, at, drift, onPick }) {
  const { rounds } = about;
  if (about.processors > mostDrawn) {
    place.textContent = `${about.processors} processors are too many to draw; the table below has their words.`;
    return;
  }
  const width = (rounds.length + 1) * across;
  const height = about.processors * down + top + bottom;
  const drawing = svg('svg', { width, height, viewBox: `0 0 ${width} ${height}`, role: 'img',
    'aria-label': `${rounds.length} rounds of ${about.processors} processors, round ${step} shown` });
  const middle = (moment, processor) => [moment * across + half, top + processor * down + down / 2];
  const fed = ancestors(about, follow, step);
  drawing.append(svg('rect', { class: 'now', x: step * across, y: 0, width: 2 * half, height, rx: 6 }));
  for (let moment = 0; moment <= rounds.length; ++moment) {
    drawing.append(svg('text', { x: moment * across + half, y: 16, class: 'moment' }, moment === 0 ? 'input' : String(moment)),
      svg('text', { x: moment * across + half, y: height - 6, class: 'moment' }, `± ${number(drift(moment))}`));
  }
  rounds.forEach((round, r) => {
    const seen = new Set();
    for (const receive of round.receives) {
      for (let i = 0; i < about.processors; ++i) {
        for (const source of sourcesOf(receive, i, about.processors)) {
          if (seen.has(source * about.processors + i) || source === i) continue;
          seen.add(source * about.processors + i);
          const [x1, y1] = middle(r, source);
          const [x2, y2] = middle(r + 1, i);
          const kind = fed[r + 1].has(i) ? 'line fed' : `line${r + 1 === step ? ' current' : ''}`;
          drawing.append(svg('line', { x1: x1 + node, y1, x2: x2 - node, y2, class: kind }));
        }
      }
    }
    for (let i = 0; i < about.processors; ++i) {
      const [x1, y] = middle(r, i);
      drawing.append(svg('line', { x1: x1 + node, y1: y, x2: x1 + across - node, y2: y, class: fed[r + 1].has(i) ? 'own fed' : 'own' }));
    }
  });
  for (let moment = 0; moment <= rounds.length; ++moment) {
    for (let i = 0; i < about.processors; ++i) {
      const [x, y] = middle(moment, i);
      const { program, network, wrong } = at(moment, i);
      const group = svg('g', { class: `node${wrong ? ' wrong' : ''}${fed[moment].has(i) ? ' fed' : ''}` });
      const shown = Number.isNaN(network) ? program : network;
      group.append(svg('rect', { x: x - node, y: y - 12, width: 2 * node, height: 24, rx: 12 }),
        svg('text', { x, y: y + 4 }, `${wrong ? '✗' : ''}${number(shown)}`),
        svg('title', {}, `processor ${i}, ${moment === 0 ? 'input' : `after round ${moment}`}: program ${program}, network ${Number.isNaN(network) ? 'does not hold it' : network}`));
      group.onclick = () => onPick(moment, i);
      drawing.append(group);
    }
  }
  const { scrollLeft } = place;
  place.replaceChildren(drawing);
  const x = step * across;
  place.scrollLeft = x < scrollLeft || x + 2 * half > scrollLeft + place.clientWidth ? x - place.clientWidth / 2 : scrollLeft;
}
