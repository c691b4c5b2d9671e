// Records the README's picture of two streams and the pictures of docs/playground.md, in chromium:
//   node playground/record.mjs PLAYGROUND.html docs/images [streams]
// two models learn recall, and larger numbers move the arrows of one; with `streams` no more than that. Then
// both models learn sums, the test range grows, sort runs round by round, and noise breaks it.
import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { animation } from './animation.mjs';
import { figure } from './figure.mjs';
import { launch } from './chromium.mjs';

const mostBytes = 1.5e6;
const trainedTo = [200, 600, 2000, 6000];  // steps
const streamsTrainedTo = 3000;
const digits = (error) => (error < 1 ? Number(error).toFixed(5) : error);
const [file, folder, only] = process.argv.slice(2);
if (!folder || (only && only !== 'streams')) {
  console.error('usage: node playground/record.mjs PLAYGROUND.html FOLDER [streams]');
  process.exit(2);
}
const address = pathToFileURL(resolve(file)).href;
const browser = await launch();
const newPage = async () => {
  const page = await browser.newPage({ viewport: { width: 1240, height: 800 }, colorScheme: 'light' });
  page.setDefaultTimeout(300000);
  return page;
};
const trainTo = async (page, step) => {
  await page.click('#go');
  await page.waitForFunction((wanted) => parseInt(document.querySelector('#status').textContent, 10) >= wanted, step);
  await page.click('#go');
  await page.waitForTimeout(1000);
};
const setScale = async (page, c) => {
  await page.locator('#c').fill(String(c));
  await page.waitForFunction((now) => document.querySelector('#summary').textContent.startsWith(`At c = ${now} `), c);
  await page.waitForTimeout(1000);
};

async function recordStreams() {
  const page = await newPage();
  await page.goto(`${address}#tab=train&task=recall`);
  await page.waitForFunction(() => document.querySelector('#nodes tbody'));
  await trainTo(page, streamsTrainedTo);
  const models = [
    { kind: 'first', title: 'Two streams: letters decide what is read', alt: 'Two streams: one arrow, the same at c = 1 and c = 10.', panels: [] },
    { kind: 'second', title: 'Standard: letters and numbers decide together', alt: 'Standard: the arrow of c = 1 gives way to others at c = 10.', panels: [] },
  ];
  for (const c of [1, 10]) {
    await setScale(page, c);
    const summary = await page.locator('#summary').textContent();
    console.log(`${await page.locator('#status').textContent()}. ${summary}`);
    const errors = [...summary.matchAll(/error ([^,;]+)/g)].map(([, error]) => error);
    for (const [i, { kind, panels }] of models.entries()) {
      const drawing = await page.locator(`svg.arrows.${kind}`).evaluate((svg) => ({ drawing: svg.outerHTML, width: svg.width.baseVal.value, height: svg.height.baseVal.value,
        answers: svg.width.baseVal.value - Math.max(...[...svg.querySelectorAll('rect')].map((rect) => rect.x.baseVal.value + rect.width.baseVal.value)) - 2 }));
      panels.push({ ...drawing, error: `c = ${c}: error ${digits(errors[i])}` });
    }
  }
  for (const [name, wide] of [['two-streams', true], ['two-streams-narrow', false]]) writeFileSync(join(folder, `${name}.svg`), figure(models, wide));
  await page.close();
}

async function recordTour() {
  const frames = [];
  const page = await newPage();
  const take = async (milliseconds) => frames.push({ png: await page.screenshot(), milliseconds });
  const still = async (name, line) => {
    await page.screenshot({ path: join(folder, `playground-${name}.png`), fullPage: true });
    console.log(`playground-${name}.png: ${await page.locator('#status').textContent()}. ${await page.locator(line).textContent()}`);
  };
  const settled = () => page.waitForTimeout(1000);

  await page.goto(`${address}#tab=train`);
  await page.waitForFunction(() => document.querySelector('#nodes tbody'));
  for (const step of trainedTo) {
    await trainTo(page, step);
    await take(600);
  }
  for (const c of [2, 4, 6, 8, 10]) {
    await setScale(page, c);
    await take(c === 10 ? 3000 : 600);
  }
  await still('train', '#summary');
  await page.goto(`${address}#tab=algorithms&program=sort&n=8&input=5,3,8,1,9,-2,7,4`);
  await page.reload();
  await page.locator('#diagram svg').waitFor();
  for (let round = 0; round <= 6; ++round) {
    if (round > 0) await page.click('#forward');
    await settled();
    await take(round === 6 ? 2000 : 700);
  }
  await page.locator('#noise').fill('0.01');
  await page.waitForFunction(() => document.querySelector('#failure').textContent.startsWith('✗'));
  await settled();
  await take(3000);
  await still('algorithms', '#failure');
  const picture = animation(frames);
  writeFileSync(join(folder, 'playground.png'), picture);
  console.log(`playground.png: ${frames.length} frames, ${picture.length} bytes`);
  if (picture.length > mostBytes) throw new Error(`playground.png has more than ${mostBytes} bytes`);
}

try {
  await recordStreams();
  if (!only) await recordTour();
} finally {
  await browser.close();
}
