// Who reads whom in a model whose nodes hold a letter and a number: nodes below each other, layers to the
// right, and an arrow as strong as the attention, the mean of the heads. On the right the answers.
import { number } from './dom.mjs';
import { svg } from './svg.mjs';

const down = 25;
const top = 4;
const pill = { first: 76, other: 30, height: 20 };
const gap = 118;
const answers = 112;  // pixels
const least = 0.02;  // weights below are not drawn
const short = (value) => value.toFixed(1);

/** `view` is what worker.mjs says of an input; `kind` is the class of the drawing, and names its model. */
export function arrows(about, view, kind) {
  const { real_nodes: nodes, depth, heads, letters } = about;
  const all = nodes + about.scratch_nodes;
  const before = nodes - about.length;  // nodes of the question, which hold no number
  const letterOf = (node) => letters[view.row[2 * node]] ?? '?';
  const weight = (layer, i, j) => {
    let sum = 0;
    for (let head = 0; head < heads; ++head) sum += view.attention[((layer * heads + head) * all + i) * all + j];
    return Math.min(1, Math.abs(sum / heads));
  };
  // After the last layer only those that answer are of interest; they stand in the middle.
  const everyone = Array.from({ length: nodes }, (_, i) => i);
  const readers = everyone.filter((i) => Number.isFinite(view.outputs[i]));
  const column = (moment) => (moment < depth ? everyone : readers);
  const widthOf = (moment) => (moment === 0 ? pill.first : pill.other);
  const left = (moment) => (moment === 0 ? 1 : 1 + pill.first + moment * gap + (moment - 1) * pill.other);
  const middle = (moment, i) => top + (nodes / 2 + column(moment).indexOf(i) - (column(moment).length - 1) / 2) * down;

  const width = left(depth) + pill.other + answers;
  const height = nodes * down + 2 * top;
  const words = readers.map((i) => {
    const source = everyone.reduce((most, j) => (weight(depth - 1, i, j) > weight(depth - 1, i, most) ? j : most), 0);
    return `${letterOf(i)} at node ${i} reads ${letterOf(source)} at node ${source}, ${Math.round(100 * weight(depth - 1, i, source))} %`;
  });
  const drawing = svg('svg', { class: `arrows ${kind}`, width, height, viewBox: `0 0 ${width} ${height}`, role: 'img',
    'aria-label': `Who reads whom in the last layer of the ${kind} model: ${words.join('; ')}` });
  for (let layer = 0; layer < depth; ++layer) {
    for (const i of column(layer + 1)) {
      for (const j of everyone) {
        const strength = weight(layer, i, j);
        if (strength < least) continue;
        const [x1, y1, x2, y2] = [left(layer) + widthOf(layer) + 2, middle(layer, j), left(layer + 1) - 3, middle(layer + 1, i)];
        const back = 9 / Math.hypot(x2 - x1, y2 - y1);
        const [x, y] = [x2 - back * (x2 - x1), y2 - back * (y2 - y1)];
        const arrow = svg('g', { class: 'arrow', opacity: strength.toFixed(2) });
        const [across, along] = [(y - y2) / 2, (x2 - x) / 2];  // at a right angle, for the head
        arrow.append(svg('line', { x1, y1, x2: short(x), y2: short(y) }),
          svg('path', { d: `M${x2} ${y2}L${short(x + across)} ${short(y + along)}L${short(x - across)} ${short(y - along)}z` }));
        drawing.append(arrow);
      }
    }
  }
  for (let moment = 0; moment <= depth; ++moment) {
    for (const i of column(moment)) {
      const [x, y] = [left(moment), middle(moment, i)];
      const value = moment > 0 ? '' : i < before ? ' ?' : ` ${number(view.row[2 * i + 1])}`;
      drawing.append(svg('rect', { x, y: y - pill.height / 2, width: widthOf(moment), height: pill.height, rx: 10 }),
        svg('text', { x: x + widthOf(moment) / 2, y: y + 4 }, letterOf(i) + value));
      if (moment === depth) drawing.append(svg('text', { x: x + pill.other + 6, y: y + 4, class: 'answer' }, `${number(view.outputs[i])} (${number(view.truth[i])})`));
    }
  }
  return drawing;
}
