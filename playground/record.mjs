// Records the README's first picture and those of docs/playground.md, in chromium:
//   node playground/record.mjs PLAYGROUND.html docs/images
// both models learn, the test range grows, sort runs round by round, and noise breaks it.
import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { animation } from './animation.mjs';
import { launch } from './chromium.mjs';

const mostBytes = 1.5e6;
const trainedTo = [200, 600, 2000, 6000];  // steps
const [file, folder] = process.argv.slice(2);
if (!folder) {
  console.error('usage: node playground/record.mjs PLAYGROUND.html FOLDER');
  process.exit(2);
}
const browser = await launch();
const frames = [];
try {
  const page = await browser.newPage({ viewport: { width: 1240, height: 800 }, colorScheme: 'light' });
  page.setDefaultTimeout(120000);
  const take = async (milliseconds) => frames.push({ png: await page.screenshot(), milliseconds });
  const still = async (name, line) => {
    await page.screenshot({ path: join(folder, `playground-${name}.png`), fullPage: true });
    console.log(`playground-${name}.png: ${await page.locator('#status').textContent()}. ${await page.locator(line).textContent()}`);
  };
  const settled = () => page.waitForTimeout(1000);

  await page.goto(`${pathToFileURL(resolve(file)).href}#tab=train`);
  await page.waitForFunction(() => document.querySelector('#nodes tbody'));
  for (const step of trainedTo) {
    await page.click('#go');
    await page.waitForFunction((wanted) => parseInt(document.querySelector('#status').textContent, 10) >= wanted, step);
    await page.click('#go');
    await settled();
    await take(600);
  }
  for (const c of [2, 4, 6, 8, 10]) {
    await page.locator('#c').fill(String(c));
    await page.waitForFunction((now) => document.querySelector('#summary').textContent.startsWith(`At c = ${now} `), c);
    await settled();
    await take(c === 10 ? 3000 : 600);
  }
  await still('train', '#summary');
  await page.goto(`${pathToFileURL(resolve(file)).href}#tab=algorithms&program=sort&n=8&input=5,3,8,1,9,-2,7,4`);
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
} finally {
  await browser.close();
}
const picture = animation(frames);
writeFileSync(join(folder, 'playground.png'), picture);
console.log(`playground.png: ${frames.length} frames, ${picture.length} bytes`);
if (picture.length > mostBytes) {
  console.error(`error: more than ${mostBytes} bytes`);
  process.exit(1);
}
