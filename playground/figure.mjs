// The README's picture of two streams: the arrows of both models at c = 1 and c = 10, as one SVG file for
// light and dark pages.
const light = { paper: '#ffffff', ink: '#1b1b1b', soft: '#f1f3f6', faint: '#c4c9d0', first: '#0067a5', second: '#b84a00' };
const dark = { paper: '#15181c', ink: '#e6e9ec', soft: '#22262b', faint: '#4a5058', first: '#5bb8f0', second: '#f0a04b' };
const rules = (colours) => `.paper{fill:${colours.paper}}text{fill:${colours.ink}}rect{fill:${colours.soft};stroke:${colours.faint}}`
  + ['first', 'second'].map((kind) => `.${kind} line{stroke:${colours[kind]}}.${kind} path,text.${kind}{fill:${colours[kind]}}`).join('');
const style = `${rules(light)}rect.paper{stroke:none}line{stroke-width:2.5}text{font:12px system-ui,sans-serif;text-anchor:middle}text.answer{text-anchor:start}`
  + `text.title{font-weight:600;font-size:14px;text-anchor:start}text.error{text-anchor:start;font-size:13px}@media (prefers-color-scheme:dark){${rules(dark)}}`;
const edge = 12;
const between = 16;
const titleHeight = 26;
const errorHeight = 24;

/** `models`: [{kind, title, alt, panels: [{error: a line of text, drawing: an <svg> as text, width, height}]}], a row for each;
    `wide`: with the answers next to the arrows. */
export function figure(models, wide) {
  const [{ width: full, height, answers }] = models[0].panels;
  const width = wide ? full : full - answers;
  const whole = { width: 2 * edge + 2 * width + between, height: 2 * edge + models.length * (titleHeight + errorHeight + height) + between };
  const rows = models.map(({ kind, title, panels }, row) => {
    const y = edge + row * (titleHeight + errorHeight + height + between);
    return `<text class="title ${kind}" x="${edge}" y="${y + 16}">${title}</text>${panels.map(({ error, drawing }, column) => {
      const x = edge + column * (width + between);
      const inner = drawing.replace(/^<svg[^>]*>/, `<svg class="${kind}" x="${x}" y="${y + titleHeight + errorHeight}" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">`);
      const head = wide ? `<text class="answer" x="${x + width - answers + 4}" y="${y + titleHeight + 12}">answer (truth)</text>` : '';
      return `<text class="error" x="${x}" y="${y + titleHeight + 12}">${error}</text>${head}${inner}`;
    }).join('\n')}`;
  });
  const alt = models.map(({ alt: each }) => each).join(' ');
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${whole.width}" height="${whole.height}" viewBox="0 0 ${whole.width} ${whole.height}" role="img" aria-label="${alt}">
<style>${style}</style>
<rect class="paper" width="${whole.width}" height="${whole.height}"/>
${rows.join('\n')}
</svg>
`;
}
