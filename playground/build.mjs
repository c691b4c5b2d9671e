// Makes the playground one HTML file that needs nothing else:
//   node playground/build.mjs build/wasm/posattn.wasm [PAGE.html, else playground.html next to the module]
// The module is inside, gzipped, the worker as text; a page opened from a folder may fetch neither.
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { buildSync } from 'esbuild';

const mostBytes = 700e3;  // gzipped: what a slow line loads in a few seconds
const here = dirname(fileURLToPath(import.meta.url));
const [wasm, page] = process.argv.slice(2);
if (!wasm) {
  console.error('usage: node playground/build.mjs MODULE.wasm [PAGE.html]');
  process.exit(2);
}

const output = page ?? join(dirname(wasm), 'playground.html');  // where `posattn playground` looks for it

const bundle = (file, format) =>
  buildSync({ entryPoints: [join(here, file)], bundle: true, minify: true, format, target: 'es2022', write: false })
    .outputFiles[0].text;
// Text inside a script element must not end it.
const inside = (text) => text.replaceAll('</script', '<\\/script');

const parts = {
  STYLE: readFileSync(join(here, 'style.css'), 'utf8'),
  MODULE: gzipSync(readFileSync(wasm), { level: 9 }).toString('base64'),
  WORKER: inside(bundle('worker.mjs', 'iife')),
  PAGE: inside(bundle('page.mjs', 'esm')),
};
const html = readFileSync(join(here, 'page.html'), 'utf8').replace(/@([A-Z]+)@/g, (_, name) => parts[name]);
writeFileSync(output, html);
const gzipped = gzipSync(html, { level: 9 }).length;
console.log(`${output}: ${Buffer.byteLength(html)} bytes, ${gzipped} gzipped`);
if (gzipped > mostBytes) {
  console.error(`error: the page has more than ${mostBytes} bytes gzipped`);
  process.exit(1);
}
