// Makes the playground one HTML file that needs nothing else (scripts/playground_page has all of it):
//   node playground/build.mjs MODULE.wasm PAGE.html
//   node playground/build.mjs --check PAGE.html       fails unless the page holds the sources as they are
// The module is inside, packed by xz, the worker as text; a page opened from a folder may fetch neither.
// The check leaves the module as it is: wasm/engine_test.mjs says whether that one still computes the same.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { buildSync } from 'esbuild';
import { embeddedModule } from './embedded.mjs';
import { unpacked } from './lzma.mjs';

const mostBytes = 700e3;  // gzipped: what a slow line loads in a few seconds
const here = dirname(fileURLToPath(import.meta.url));
const [first, page] = process.argv.slice(2);
if (!page) {
  console.error('usage: node playground/build.mjs MODULE.wasm PAGE.html, or --check PAGE.html');
  process.exit(2);
}

const source = (file) => readFileSync(join(here, file), 'utf8');
const bundle = (file, format) =>
  buildSync({ entryPoints: [join(here, file)], bundle: true, minify: true, format, target: 'es2022', write: false })
    .outputFiles[0].text;
// Text inside a script element must not end it.
const inside = (text) => text.replaceAll('</script', '<\\/script');
const [, repository] = /^(?:repository-code|url): *"?([^"\s]+)/m.exec(source('../CITATION.cff')) ?? [];

function pageWith(module) {
  const parts = {
    STYLE: source('style.css'),
    REPOSITORY: repository ? ` Its program, library and documentation: <a href="${repository}" target="_blank" rel="noopener">posattn</a>.` : '',
    MODULE: module,
    WORKER: inside(bundle('worker.mjs', 'iife')),
    PAGE: inside(bundle('page.mjs', 'esm')),
  };
  return source('page.html').replace(/@([A-Z]+)@/g, (_, name) => parts[name]);
}

// As lzma.mjs reads it: with the length in the head, which xz leaves open.
function packed(module) {
  const bytes = execFileSync('xz', ['--format=lzma', '--lzma1=preset=9e,pb=0,lc=4', '--stdout'], { input: module, maxBuffer: module.length + 1e6 });
  bytes.writeBigUInt64LE(BigInt(module.length), 5);
  if (!module.equals(unpacked(bytes))) fail('lzma.mjs does not unpack what xz packed');
  return bytes;
}

function fail(problem) {
  console.error(`error: ${problem}`);
  process.exit(1);
}

if (first === '--check') {
  const html = readFileSync(page, 'utf8');
  if (pageWith(embeddedModule(html)) !== html) fail(`${page} is older than the files of playground/; scripts/playground_page makes it`);
} else {
  const html = pageWith(packed(readFileSync(first)).toString('base64'));
  const gzipped = gzipSync(html, { level: 9 }).length;
  if (gzipped > mostBytes) fail(`the page would have ${gzipped} bytes gzipped, more than ${mostBytes}`);
  writeFileSync(page, html);
  console.log(`${page}: ${Buffer.byteLength(html)} bytes, ${gzipped} gzipped`);
}
