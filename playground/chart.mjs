// Lines on a canvas with logarithmic values, and attention matrices as squares.

function prepared(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const { width, height } = canvas.getBoundingClientRect();
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const pen = canvas.getContext('2d');
  pen.scale(ratio, ratio);
  return { pen, width, height };
}

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** Each line: {name, colour (a CSS variable), dash, points: [[x, y], ...]}; `at`: a vertical mark. */
export function drawLines(canvas, lines, at) {
  const { pen, width, height } = prepared(canvas);
  const shown = lines.flatMap((line) => line.points).filter(([, y]) => y > 0 && Number.isFinite(y));
  if (shown.length === 0) return;
  const xs = shown.map(([x]) => x);
  const logs = shown.map(([, y]) => Math.log10(y));
  const [left, right] = [Math.min(...xs), Math.max(...xs, Math.min(...xs) + 1)];
  const [low, high] = [Math.floor(Math.min(...logs)), Math.max(Math.ceil(Math.max(...logs)), Math.floor(Math.min(...logs)) + 1)];
  const margin = 44;
  const place = (x, log) => [margin + ((x - left) / (right - left)) * (width - margin - 8),
    height - 22 - ((log - low) / (high - low)) * (height - 34)];
  pen.font = '12px system-ui, sans-serif';
  pen.fillStyle = colour('--ink');
  pen.strokeStyle = colour('--faint');
  for (let power = low; power <= high; ++power) {
    const [, y] = place(left, power);
    pen.fillText(String(+`1e${power}`), 2, y + 4);
    pen.beginPath();
    pen.moveTo(margin, y);
    pen.lineTo(width - 8, y);
    pen.stroke();
  }
  pen.fillText(String(left), margin, height - 6);
  pen.fillText(String(right), width - 8 - pen.measureText(String(right)).width, height - 6);
  if (at !== undefined) {
    const [x] = place(at, low);
    pen.fillRect(x, 8, 1, height - 30);
  }
  for (const line of lines) {
    pen.strokeStyle = colour(line.colour);
    pen.lineWidth = 2;
    pen.setLineDash(line.dash ?? []);
    pen.beginPath();
    line.points.forEach(([x, y], i) => {
      const [px, py] = place(x, Math.log10(y));
      if (i === 0) pen.moveTo(px, py);
      else pen.lineTo(px, py);
    });
    pen.stroke();
    pen.setLineDash([]);
    const last = line.points.at(-1);
    if (!last) continue;
    const [px, py] = place(last[0], Math.log10(last[1]));
    pen.fillStyle = colour(line.colour);
    pen.fillText(line.name, px - pen.measureText(line.name).width - 2, py - 5);
  }
}

/** attention [depth, heads, nodes, nodes]: layers below each other, heads side by side; dark: 1. */
export function drawMaps(canvas, attention, { depth, heads, nodes }) {
  const gap = 1;
  const size = nodes + gap;
  canvas.width = heads * size;
  canvas.height = depth * size;
  const pen = canvas.getContext('2d');
  const image = pen.createImageData(canvas.width, canvas.height);
  for (let map = 0; map < depth * heads; ++map) {
    for (let i = 0; i < nodes; ++i) {
      for (let j = 0; j < nodes; ++j) {
        const y = Math.floor(map / heads) * size + i;
        const x = (map % heads) * size + j;
        const shade = 255 * (1 - attention[(map * nodes + i) * nodes + j]);
        image.data.set([shade, shade, 255 - (255 - shade) * 0.5, 255], 4 * (y * canvas.width + x));
      }
    }
  }
  pen.putImageData(image, 0, 0);
}
