// How heavy and how quick the page is, in chromium:
//   node playground/measure.mjs PLAYGROUND.html
// its size compressed, the first paint of five fresh loads, and the frames while both models train.
import { readFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { launch } from './chromium.mjs';

const loads = 5;
const seconds = 5;
const [file] = process.argv.slice(2);
if (!file) {
  console.error('usage: node playground/measure.mjs PLAYGROUND.html');
  process.exit(2);
}
const kilobytes = (bytes) => `${Math.round(bytes / 1000)} KB`;
const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
const address = pathToFileURL(resolve(file)).href;
const html = readFileSync(file);
console.log(`size: ${kilobytes(html.length)}, ${kilobytes(gzipSync(html, { level: 9 }).length)} gzipped, ${kilobytes(brotliCompressSync(html).length)} brotli`);

const browser = await launch();
try {
  const paints = [];
  for (let i = 0; i < loads; ++i) {
    const page = await browser.newPage();
    await page.goto(address);
    await page.waitForFunction(() => performance.getEntriesByName('first-contentful-paint').length > 0);
    paints.push(await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0].startTime));
    await page.close();
  }
  console.log(`first paint: ${Math.round(median(paints))} ms (median of ${loads}, largest ${Math.round(Math.max(...paints))} ms)`);

  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  await page.goto(`${address}#tab=train`);
  await page.waitForFunction(() => document.querySelector('#nodes tbody'));
  await page.click('#go');
  await page.waitForFunction(() => parseInt(document.querySelector('#status').textContent, 10) > 100);
  const before = parseInt(await page.locator('#status').textContent(), 10);
  const frames = await page.evaluate((length) => new Promise((done) => {
    const times = [];
    const next = (time) => {
      times.push(time);
      if (time - times[0] < length) requestAnimationFrame(next);
      else done(times.slice(1).map((each, i) => each - times[i]));
    };
    requestAnimationFrame(next);
  }), 1000 * seconds);
  const steps = parseInt(await page.locator('#status').textContent(), 10) - before;
  const whole = frames.reduce((sum, each) => sum + each, 0);
  console.log(`while training: ${(1000 * frames.length / whole).toFixed(1)} frames a second over ${seconds} s, median ${median(frames).toFixed(1)} ms, longest ${Math.max(...frames).toFixed(0)} ms; ${Math.round(1000 * steps / whole)} steps a second of both models`);
  console.log(`load of the machine: ${loadavg()[0].toFixed(1)}`);
} finally {
  await browser.close();
}
