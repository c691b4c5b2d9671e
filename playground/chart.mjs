// Drawings on canvases: lines with a logarithmic axis, predictions at nodes, attention matrices.

/** The canvas at the screen's resolution; null while it is not shown. */
function prepared(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const { clientWidth: width, clientHeight: height } = canvas;
  if (width === 0) return null;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const pen = canvas.getContext('2d');
  pen.scale(ratio, ratio);
  pen.font = '12px system-ui, sans-serif';
  return { pen, width, height };
}

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const margin = 48;

function axes({ pen, width, height }, [left, right], [low, high]) {
  const span = Math.max(right - left, 1e-9);
  const place = (x, y) => [margin + ((x - left) / span) * (width - margin - 12),
    height - 22 - ((y - low) / (high - low)) * (height - 34)];
  pen.fillStyle = colour('--ink');
  pen.fillText(String(left), margin, height - 6);
  pen.fillText(String(right), width - 8 - pen.measureText(String(right)).width, height - 6);
  return place;
}

function gridLine(pen, text, y, width) {
  pen.fillStyle = colour('--ink');
  pen.fillText(text, margin - 6 - pen.measureText(text).width, y + 4);
  pen.strokeStyle = colour('--faint');
  pen.beginPath();
  pen.moveTo(margin, y);
  pen.lineTo(width - 8, y);
  pen.stroke();
}

function stroke(pen, line, places) {
  pen.strokeStyle = colour(line.colour);
  pen.lineWidth = 2;
  pen.setLineDash(line.dash);
  pen.beginPath();
  if (places.length === 1) pen.arc(...places[0], 2, 0, 2 * Math.PI);
  else places.forEach(([x, y], i) => (i === 0 ? pen.moveTo(x, y) : pen.lineTo(x, y)));
  pen.stroke();
  pen.setLineDash([]);
}

/** Each line: {colour (a CSS variable), dash, points: [[x, y], ...]}; `at`: a vertical mark; `empty`: said where there is none. */
export function drawLines(canvas, lines, at, empty = '') {
  const area = prepared(canvas);
  if (!area) return;
  const { pen, width, height } = area;
  const drawn = lines.map((line) => ({ ...line, points: line.points.filter(([, y]) => y > 0 && Number.isFinite(y)) }));
  const shown = drawn.flatMap((line) => line.points);
  if (shown.length === 0) {
    pen.fillStyle = colour('--comment');
    pen.fillText(empty, margin, height / 2);
    return;
  }
  const logs = shown.map(([, y]) => Math.log10(y));
  const xs = shown.map(([x]) => x);
  const low = Math.floor(Math.min(...logs));
  const high = Math.max(Math.ceil(Math.max(...logs)), low + 1);
  const place = axes(area, [Math.min(...xs), Math.max(...xs)], [low, high]);
  const every = Math.ceil((high - low) / 8);
  for (let power = low; power <= high; power += every) {
    gridLine(pen, Math.abs(power) > 4 ? `1e${power}` : String(+`1e${power}`), place(0, power)[1], width);
  }
  if (at !== undefined) {
    pen.fillStyle = colour('--ink');
    pen.fillRect(place(at, low)[0], 8, 1, height - 30);
  }
  for (const line of drawn) stroke(pen, line, line.points.map(([x, y]) => place(x, Math.log10(y))));
}

/** Lines of one value for each node, and circles for the truth. */
export function drawPredictions(canvas, lines, truth) {
  const area = prepared(canvas);
  if (!area) return;
  const { pen, width } = area;
  const values = [...truth, ...lines.flatMap((line) => [...line.values])].filter(Number.isFinite);
  if (values.length === 0) return;
  const low = Math.min(0, ...values);
  const high = Math.max(...values, low + 1);
  const place = axes(area, [0, Math.max(truth.length, 2) - 1], [low, high]);
  // Zero has a label of its own unless it would lie on another.
  const apart = (high - low) / 10;
  const labels = low < -apart && high > apart ? [low, 0, high] : [Math.abs(low) < apart ? 0 : low, high];
  for (const value of labels) gridLine(pen, String(Number(value.toPrecision(2))), place(0, value)[1], width);
  for (const line of lines) stroke(pen, line, Array.from(line.values, (value, i) => place(i, value)).filter(([, y]) => Number.isFinite(y)));
  pen.strokeStyle = colour('--ink');
  pen.lineWidth = 1.5;
  truth.forEach((value, i) => {
    if (!Number.isFinite(value)) return;
    pen.beginPath();
    pen.arc(...place(i, value), 4, 0, 2 * Math.PI);
    pen.stroke();
  });
}

/** What the colours of these maps mean: the weight of full colour, 1 where no weight is above it, and whether any is below 0. */
export function mapScale(attention) {
  const largest = attention.reduce((most, weight) => Math.max(most, Math.abs(weight)), 0);
  return { full: largest > 1.001 ? largest : 1, negative: attention.some((weight) => weight < 0) };  // a sum may round to above 1
}

/** attention [depth, heads, nodes, nodes]: a column of maps for each layer, a row for each head; weights below 0 have their own colour. */
export function drawMaps(canvas, attention, { depth, heads, nodes }) {
  const label = 22;
  const gap = 6;
  const room = canvas.parentElement.clientWidth;
  if (room === 0) return;
  const side = Math.min(112, Math.max(40, (room - label) / depth - gap));
  const size = { width: `${Math.max(room, label + depth * (side + gap))}px`, height: `${heads * (side + gap) + 16}px` };
  for (const [key, value] of Object.entries(size)) if (canvas.style[key] !== value) canvas.style[key] = value;
  const { pen } = prepared(canvas);
  const cell = side / nodes;
  const place = (layer, head) => [label + layer * (side + gap), 16 + head * (side + gap)];
  pen.fillStyle = colour('--ink');
  for (let layer = 0; layer < depth; ++layer) pen.fillText(`L${layer}`, place(layer, 0)[0], 11);
  for (let head = 0; head < heads; ++head) pen.fillText(`H${head}`, 0, place(0, head)[1] + side / 2);
  pen.strokeStyle = colour('--faint');
  const { full } = mapScale(attention);
  const [positive, negative] = [colour('--map'), colour('--map-negative')];
  for (let map = 0; map < depth * heads; ++map) {
    const [x, y] = place(Math.floor(map / heads), map % heads);
    pen.globalAlpha = 1;
    pen.strokeRect(x, y, side, side);
    for (let i = 0; i < nodes; ++i) {
      for (let j = 0; j < nodes; ++j) {
        const weight = attention[(map * nodes + i) * nodes + j];
        pen.fillStyle = weight < 0 ? negative : positive;
        pen.globalAlpha = Math.min(1, Math.abs(weight) / full);
        pen.fillRect(x + j * cell, y + i * cell, cell, cell);
      }
    }
  }
  pen.globalAlpha = 1;
}
