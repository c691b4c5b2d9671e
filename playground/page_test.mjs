// The playground in a real browser (Debian's chromium, or the program that CHROMIUM names):
//   node playground/page_test.mjs PLAYGROUND.html [FOLDER for pictures]
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { launch } from './chromium.mjs';

const [file, pictures] = process.argv.slice(2);
if (!file) {
  console.error('usage: node playground/page_test.mjs PLAYGROUND.html [FOLDER]');
  process.exit(2);
}
const address = pathToFileURL(resolve(file)).href;
const folder = mkdtempSync(join(tmpdir(), 'posattn-page-'));
const browser = await launch();

// Every page is watched: nothing may be written to the console, and nothing asked of the network.
async function withPage(options, body) {
  const context = await browser.newContext({ viewport: { width: 1120, height: 800 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(60000);
  const seen = [];
  page.on('console', (message) => seen.push(message.text()));
  page.on('pageerror', (error) => seen.push(String(error)));
  page.on('request', (request) => {
    if (/^https?:/.test(request.url()) && request.url() !== options.served) seen.push(`request ${request.url()}`);
  });
  await body(page);
  assert.deepEqual(seen, []);
  await context.close();
}

const picture = async (page, name) => {
  if (pictures) await page.screenshot({ path: join(pictures, `${name}.png`) });
};
const text = (page, id) => page.locator(`#${id}`).textContent();
const ready = (page) => page.waitForFunction(() => document.querySelector('#nodes tbody'));
const openTrain = async (page) => {
  await ready(page);
  await page.click('#tab-train');
};
const setRange = (page, id, value) => page.locator(`#${id}`).fill(String(value));
const steps = (page) => page.waitForFunction(() => parseInt(document.querySelector('#status').textContent, 10) > 0);
// The page is at rest soon after a pause: its errors are read until they are as expected, or a minute has passed.
async function expectErrors(page, c, asExpected) {
  await setRange(page, 'c', c);
  let summary = '';
  for (let i = 0; i < 300; ++i) {
    summary = await text(page, 'summary');
    const found = [...summary.matchAll(/error ([\d.e+-]+)/g)].map(([, value]) => Number(value));
    if (summary.startsWith(`At c = ${c} `) && found.length === 2 && asExpected(...found)) return;
    await page.waitForTimeout(200);
  }
  assert.fail(`errors at c = ${c}: ${summary}`);
}
// What of these is not wholly on the screen as it is scrolled now.
const outside = (page, selectors) => page.evaluate((all) => all.filter((selector) => [...document.querySelectorAll(selector)].some((each) => {
  const { left, top, right, bottom, width } = each.getBoundingClientRect();
  return width === 0 || left < -1 || top < -1 || right > innerWidth + 1 || bottom > innerHeight + 1;
})), selectors);
// The words of the heads of tables that go over two lines.
const brokenWords = (page) => page.evaluate(() => [...document.querySelectorAll('th')].flatMap((head) => {
  const text = head.firstChild;
  return [...(text?.data ?? '').matchAll(/[^\s-]+/g)].filter((word) => {
    const range = document.createRange();
    range.setStart(text, word.index);
    range.setEnd(text, word.index + word[0].length);
    return range.getClientRects().length > 1;
  }).map(([word]) => word);
}));
const noSideScroll = async (page) =>
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth), 'the page is wider than the screen');

const tests = {
  async 'the page opens on the tour and says what it is'(page) {
    await page.locator('#tour').getByRole('heading', { name: 'What is this?' }).waitFor();
    const links = await page.locator('#tour a').evaluateAll((all) => all.map((link) => link.href));
    assert.ok(links.includes('https://arxiv.org/abs/2410.01686'), links.join(' '));
    const [, repository] = /^(?:repository-code|url): *"?([^"\s]+)/m.exec(readFileSync(new URL('../CITATION.cff', import.meta.url), 'utf8')) ?? [];
    assert.equal(links.length, repository ? 2 : 1);
    if (repository) assert.ok(links.includes(new URL(repository).href), links.join(' '));
    // Nothing has been set up: the list speaks of nothing that is going on.
    assert.doesNotMatch(await text(page, 'scenes'), /\bnow\b|below|the table/);
    await ready(page);
    await page.click('#tab-algorithms');
    await page.locator('#diagram svg').waitFor();
    await page.getByRole('link', { name: 'What is this?' }).click();
    await page.locator('#tour h2').first().waitFor();
  },

  async 'training: losses fall, and a larger range parts the models'(page) {
    await openTrain(page);
    await page.click('#step');
    await page.waitForFunction(() => /^10 steps, losses [\d.]+ and [\d.]+$/.test(document.querySelector('#status').textContent));
    assert.match(await page.locator('#model-first .hint').textContent(), /^length 8, width 16, 4 layers, 2 heads, \d+ parameters$/);
    await page.click('#go');
    await page.waitForFunction(() => parseInt(document.querySelector('#status').textContent, 10) >= 1000, null, { timeout: 180000 });
    await page.click('#go');
    await expectErrors(page, 1, (first, second) => first < 0.5 && second < 0.5);
    await expectErrors(page, 10, (first, second) => second > 5 * first);
    const summary = await text(page, 'summary');
    assert.match(summary, /positional.*moved 0 %.*standard.*moved [1-9]\d* %/);
    await picture(page, 'train');
    await page.waitForURL(/tab=train.*c=10/);
  },

  async 'the input can be typed'(page) {
    await openTrain(page);
    await page.getByLabel('Node 0: value').fill('1');
    await page.getByLabel('Node 1: value').fill('0.5');
    await page.waitForFunction(() => document.querySelectorAll('#nodes tbody tr')[1].children[2].textContent === '1.5');
    await page.locator('#task').selectOption('sort');
    await page.waitForFunction(() => document.querySelector('#problem').textContent === '' && location.hash.includes('task=sort'));
  },

  async 'recall: letters decide whom two streams read, whatever the numbers'(page) {
    await openTrain(page);
    const settings = () => page.evaluate(() => ['first', 'second', 'width', 'depth', 'blocks', 'lr'].map((id) => document.getElementById(id).value).join());
    const reads = (place) => page.locator(`svg.arrows.${place}`).getAttribute('aria-label');
    const letter = (node) => page.getByLabel(`Node ${node}: letter`);
    await page.locator('#task').selectOption('recall');
    assert.equal(await settings(), 'two-streams,standard,32,1,LayerNorm,0.002');
    await page.click('#go');
    await page.waitForFunction(() => parseInt(document.querySelector('#status').textContent, 10) >= 1000, null, { timeout: 180000 });
    await page.click('#go');
    await expectErrors(page, 1, (first, second) => first < 0.02 && second < 0.02);
    assert.match(await page.locator('#model-first .hint').textContent(), /^length 8, width 32, 1 layer, 1 head, /);
    const before = await reads('first');
    assert.match(before, /: ([a-z]) at node 0 reads \1 at node [1-8], (9\d|100) %$/);
    await picture(page, 'recall-1');
    await expectErrors(page, 10, (first, second) => first < 0.5 && second > 10);
    assert.match(await text(page, 'summary'), /two-streams: .*moved 0 %; standard: .*moved [1-9]\d* %/);
    const whom = (label) => label.replace(/, \d+ %$/, '');  // a drawing may be some steps behind the last one
    assert.equal(whom(await reads('first')), whom(before));
    await picture(page, 'recall-10');
    // Another question, which the keyboard alone can ask.
    const asked = await letter(3).inputValue();
    await letter(0).focus();
    await page.keyboard.type(asked);
    await page.waitForFunction((wanted) => document.querySelector('svg.arrows.first').getAttribute('aria-label').includes(`${wanted} at node 0 reads ${wanted} at node 3`), asked);
    const row = page.locator('#nodes tbody tr').first().locator('td');
    assert.ok(Math.abs(Number(await row.nth(1).textContent()) - Number(await page.getByLabel('Node 3: value').inputValue())) < 0.06);
    await page.getByLabel('Node 3: value').fill('-7');
    await page.waitForFunction(() => document.querySelector('#nodes tbody tr').children[2].textContent === '-7');
    // c scales numbers and leaves letters; where no item has the letter there is no answer.
    await setRange(page, 'c', 5);
    await page.waitForFunction(() => document.querySelector('#nodes tbody tr').children[2].textContent === '-3.5');
    assert.equal(await letter(0).inputValue(), asked);
    const missing = [...'abcdefghijklmnopqrstuvwxyz'].find((each) => !before.includes(each) && each !== asked);
    await letter(3).fill(missing);
    await page.waitForFunction(() => document.querySelector('#nodes tbody tr').children[2].textContent === '–');
    for (const task of ['asked-min', 'asked-operation', 'sort-by-key', 'pointer']) {
      await page.locator('#task').selectOption(task);
      await page.click('#step');
      await steps(page);
      assert.equal(await text(page, 'problem'), '');
      assert.match(await reads('second'), /reads/);
    }
    await page.locator('#task').selectOption('cumulative-sum');
    assert.equal(await settings(), 'positional,standard,16,4,plain,0.002');
    await page.waitForFunction(() => document.querySelectorAll('svg.arrows').length === 0);
  },

  async 'architectures stand in groups, and those that hold are told apart'(page) {
    await openTrain(page);
    const groups = await page.locator('#second optgroup').evaluateAll((all) => all.map((group) => [group.label, [...group.children].map((option) => option.value)]));
    assert.deepEqual(groups.map(([label]) => label), ['attention does not see the scale', 'others']);
    assert.ok(['positional', 'homogeneous', 'scale-free'].every((name) => groups[0][1].includes(name)));
    assert.ok(['standard', 'm2'].every((name) => groups[1][1].includes(name)));
    for (const name of groups.flatMap(([, names]) => names)) {  // every one of them trains
      await page.locator('#second').selectOption(name);
      await page.click('#step');
      await steps(page);
      assert.equal(await text(page, 'problem'), '');
    }
  },

  async 'a model is saved, and loaded again'(page) {
    await openTrain(page);
    const save = async (place, width, name) => {
      await page.locator('#width').selectOption(width);
      await page.locator('#depth').selectOption('2');
      await page.click('#step');
      await steps(page);
      const download = page.waitForEvent('download');
      await page.click(`#save-${place}`);
      assert.equal((await download).suggestedFilename(), name);
      await (await download).saveAs(join(folder, name));
      assert.ok(readFileSync(join(folder, name)).length > 5000);
      return join(folder, name);
    };
    await save('second', '8', 'cumulative-sum-standard.safetensors');
    const saved = await save('first', '32', 'cumulative-sum-positional.safetensors');
    await page.setInputFiles('#load-second', saved);
    await page.waitForFunction(() => document.querySelector('#model-second h2').textContent === 'Attention of positional (cumulative-sum-positional.safetensors)');
    await page.waitForFunction(() => [...document.querySelectorAll('#nodes tbody tr')].every((row) => row.children[3].textContent === row.children[4].textContent));
    await page.setInputFiles('#load-second', { name: 'no.model', mimeType: '', buffer: Buffer.from('no model') });
    await page.waitForFunction(() => document.querySelector('#problem').textContent.includes('no.model'));
  },

  async 'a broken program says what is wrong under its line'(page) {
    await ready(page);
    await page.click('#tab-algorithms');
    await page.locator('#diagram svg').waitFor();
    const source = await page.locator('#source').inputValue();
    await page.locator('#source').fill(source.replace('receive p = x', 'receive p x'));
    await page.locator('#source-problem').waitFor();
    assert.match(await text(page, 'source-problem'), /^Line 11: .*expected .*/s);
    await picture(page, 'error');
    await page.locator('#source').fill(source);
    await page.locator('#source-problem').waitFor({ state: 'hidden' });
  },

  async 'sort: step through its rounds, verify, break it'(page) {
    await ready(page);
    await page.click('#tab-algorithms');
    await page.locator('#diagram svg').waitFor();
    assert.equal(await text(page, 'program-status'), '6 rounds; 6 layers, 2 heads, width 2, 259 weights');
    const inputs = page.locator('#words input');
    assert.deepEqual(await inputs.evaluateAll((fields) => fields.map((field) => field.value)), [...'31415926']);
    const values = [5, 3, 8, 1, 9, -2, 7, 4];
    for (const [i, value] of values.entries()) await inputs.nth(i).fill(String(value));
    for (let round = 1; round <= 6; ++round) {
      await page.click('#forward');
      await page.waitForFunction((now) => document.querySelector('#round-text').textContent.startsWith(`Round ${now} of 6`), round);
    }
    assert.match(await text(page, 'round-text'), /^Round 6 of 6, lines 11, 12, layer 5: x = /);
    assert.deepEqual(await page.locator('.copy .now').allTextContents().then((lines) => lines.map((line) => line.trim().split(' ')[0])), ['receive', 'x']);
    const words = await page.locator('#words tbody tr td:last-child').allTextContents();
    assert.deepEqual(words.map(Number), [...values].sort((a, b) => a - b));
    await page.evaluate(() => document.activeElement.blur());
    await page.locator('#follow').selectOption('0');
    assert.match(await text(page, 'failure'), /^✓/);
    await page.click('#verify');
    await page.waitForFunction(() => document.querySelector('#verified').textContent.startsWith('✓'));
    await picture(page, 'algorithms');
    await setRange(page, 'noise', 0.1);
    await page.waitForFunction(() => /^✗ Round \d/.test(document.querySelector('#failure').textContent));
    await page.click('#verify');
    await page.waitForFunction(() => document.querySelector('#verified').textContent.startsWith('✗'));
    await picture(page, 'noise');
  },

  async 'every program of the library compiles'(page) {
    await ready(page);
    await page.click('#tab-algorithms');
    const names = await page.locator('#program option').evaluateAll((options) => options.map((option) => option.value).filter((name) => !name.startsWith('(')));
    assert.ok(names.length >= 15);
    for (const name of names) {
      await page.locator('#program').selectOption(name);
      await page.waitForFunction((wanted) => document.querySelector('#source').value.includes(`program ${wanted}\n`)
        && /^\d+ rounds?/.test(document.querySelector('#program-status').textContent) && document.querySelector('#failure').textContent.startsWith('✓'), name);
    }
  },

  async 'k-hop: letters are typed, and the messages follow them'(page) {
    await ready(page);
    await page.evaluate(() => { location.hash = '#tab=algorithms&program=k-hop&n=6&parameters=K=1,q=3&level=written&input=1,1,2,1,1,1,3,1,2,1,1,1'; });
    await page.locator('#words input.letter').first().waitFor();
    const lines = () => page.locator('#diagram line.line').evaluateAll((all) => all.map((line) => ['y1', 'y2'].map((name) => line.getAttribute(name)).join()).join(' '));
    const results = async () => {
      await page.locator('#round').fill('100');
      await page.waitForFunction(() => /^Round (\d+) of \1,/.test(document.querySelector('#round-text').textContent));
      const head = await page.locator('#words thead th').allTextContents();
      const column = head.lastIndexOf('value');
      return page.locator('#words tbody tr').evaluateAll((rows, at) => rows.map((row) => row.children[at].textContent).join(''), column);
    };
    // abacba: one hop leads to the letter after the last earlier copy of one's own.
    await page.waitForFunction(() => document.querySelector('#failure').textContent.startsWith('Messages'));
    assert.equal(await results(), '__b_ac');
    assert.match(await text(page, 'program-status'), /^10 rounds as written, 11 in the network; /);
    assert.equal(await text(page, 'round-text'), 'Round 10 of 10, lines 38, 39, 40, 41, 43, 44, 45, 46');
    const before = await lines();
    await page.getByLabel('input 1 of processor 5').fill('c');
    await page.waitForFunction((old) => [...document.querySelectorAll('#diagram line.line')].map((line) => ['y1', 'y2'].map((name) => line.getAttribute(name)).join()).join(' ') !== old, before);
    assert.equal(await results(), '__b_ab');
    await page.waitForURL(/input=1%2C1%2C2%2C1%2C1%2C1%2C3%2C1%2C2%2C1%2C3%2C1/);
    // No hop for all of them, by one field.
    await page.getByLabel('input 2 of processor 0').fill('0');
    await page.waitForFunction(() => [...document.querySelectorAll('#words tbody tr')].every((row) => row.children[2].firstChild.value === '0'));
    await page.locator('#level').selectOption('network');
    await page.waitForFunction(() => document.querySelector('#failure').textContent.startsWith('✓'));
    assert.equal(await results(), 'abacbc');
    await picture(page, 'k-hop');
  },

  async 'gather: a place that is typed changes places with who had it'(page) {
    await ready(page);
    await page.evaluate(() => { location.hash = '#tab=algorithms&program=gather&n=4&input=0,10,1,20,2,30,3,40'; });
    await page.getByLabel('input 1 of processor 3').waitFor();
    await page.waitForFunction(() => document.querySelector('#failure').textContent.startsWith('✓') && document.querySelectorAll('#words tbody tr').length === 4);
    await page.getByLabel('input 1 of processor 0').fill('3');
    await page.waitForFunction(() => document.querySelectorAll('#words tbody tr')[3].children[1].firstChild.value === '0');
    await page.locator('#round').fill('100');
    await page.waitForFunction(() => [...document.querySelectorAll('#words tbody tr')].map((row) => row.lastChild.textContent).join() === '40,20,30,10');
    assert.match(await text(page, 'failure'), /^✓/);
  },

  async 'a long compile can be stopped'(page) {
    await ready(page);
    await page.click('#tab-algorithms');
    await page.locator('#diagram svg').waitFor();
    await page.locator('#n').evaluate((input) => { input.value = 20000; });  // several seconds
    await page.click('#compile');
    await page.waitForFunction(() => document.querySelector('#program-status').textContent === 'compiling …' && !document.querySelector('#stop').disabled);
    await page.click('#stop');
    assert.match(await text(page, 'program-status'), /^stopped/);
    await page.locator('#n').fill('4');
    await page.click('#compile');
    await page.waitForFunction(() => /^\d+ rounds/.test(document.querySelector('#program-status').textContent));
  },

  async 'the tour sets the tabs up'(page) {
    await picture(page, 'tour');
    await page.getByRole('button', { name: 'Set up: Why attention by position' }).click();
    await page.waitForFunction(() => document.querySelector('#program-status').textContent === '3 rounds; 3 layers, 1 head, width 1, 43 weights');
    await page.locator('#scene').getByRole('button', { name: 'Next' }).click();
    await page.waitForFunction(() => parseInt(document.querySelector('#status').textContent, 10) >= 50);
    for (const title of ['heads', 'sort', 'Noise', 'k-hop', 'Two streams']) {
      await page.locator('#scene').getByRole('button', { name: 'Next' }).click();
      assert.ok((await text(page, 'scene')).includes(title));
    }
    await page.locator('svg.arrows.second').waitFor();
    await page.locator('#scene').getByRole('button', { name: 'Back' }).click();
    await page.waitForFunction(() => document.querySelector('#failure').textContent.startsWith('Messages'));
    assert.deepEqual(await page.locator('#words input.letter').evaluateAll((fields) => fields.map((field) => field.value)), [...'abacbabc']);
  },

  async 'keyboard alone'(page) {
    await ready(page);
    const press = (key) => page.keyboard.press(key);
    const focus = () => page.evaluate(() => document.activeElement.id);
    await press('Tab');
    assert.equal(await focus(), 'tab-tour');
    await press('ArrowLeft');
    assert.equal(await focus(), 'tab-algorithms');
    await page.locator('#diagram svg').waitFor();
    await press('ArrowLeft');
    for (let i = 0; i < 20 && (await focus()) !== 'step'; ++i) await press('Tab');
    await press('Enter');
    await steps(page);
    for (let i = 0; i < 20 && (await focus()) !== 'c'; ++i) await press('Tab');
    await press('ArrowRight');
    assert.equal(await text(page, 'cValue'), '1.5');
    const unnamed = await page.evaluate(() => [...document.querySelectorAll('button, input, select, textarea')]
      .filter((each) => !each.labels?.length && !each.getAttribute('aria-label') && !each.getAttribute('aria-labelledby') && !each.textContent.trim()).length);
    assert.equal(unnamed, 0);
  },
};

const quick = async (page, name) => {
  await ready(page);
  await noSideScroll(page);
  await picture(page, `${name}-tour`);
  await page.click('#tab-train');
  await page.click('#step');
  await steps(page);
  await noSideScroll(page);
  assert.deepEqual(await brokenWords(page), []);
  await picture(page, `${name}-train`);
  await page.click('#tab-algorithms');
  await page.locator('#diagram svg').waitFor();
  await noSideScroll(page);
  assert.deepEqual(await brokenWords(page), []);
  await picture(page, `${name}-algorithms`);
};
// A page that carries models and a program, as `posattn playground` fills it (tests/cli has the command).
function carrying(content) {
  const place = '<script type="application/json" id="given">null</script>';
  const html = readFileSync(file, 'utf8');
  assert.equal(html.split(place).length, 2);
  const filled = join(folder, 'carrying.html');
  writeFileSync(filled, html.replace(place, place.replace('null', () => JSON.stringify(content).replaceAll('<', '\\u003c'))));
  return pathToFileURL(filled).href;
}
const own = '# </script><b>\nprogram mine\nword x : real = input\nreceive y = x from i - 1\nx = x + y\noutput x\n';

const started = performance.now();
const tell = (name) => console.log(`ok ${((performance.now() - started) / 1000).toFixed(1)} s: ${name}`);
try {
  for (const [name, body] of Object.entries(tests)) {
    await withPage({}, async (page) => {
      await page.goto(address);
      await body(page);
    });
    tell(name);
  }
  for (const width of [360, 390]) {
    await withPage({ viewport: { width, height: 740 } }, async (page) => {
      await page.goto(address);
      await quick(page, `narrow-${width}`);
      await page.click('#tab-train');
      await page.locator('#model-second canvas').evaluate((canvas) => canvas.scrollIntoView({ block: 'end' }));
      assert.deepEqual(await outside(page, ['#c', '.maps']), []);
      const [above, below] = await Promise.all(['.range', '#model-first canvas'].map((each) => page.locator(each).boundingBox()));
      assert.ok(above.y + above.height <= below.y, 'the slider hides a map');
      await picture(page, `narrow-${width}-maps`);
      await page.locator('#task').selectOption('recall');
      await page.click('#step');
      await steps(page);
      await noSideScroll(page);
      assert.deepEqual(await brokenWords(page), []);
      let hidden;  // what is written above the drawing may still grow
      for (let i = 0; i < 50 && hidden?.length !== 0; ++i) {
        await page.waitForTimeout(i === 0 ? 0 : 200);
        await page.locator('svg.arrows.second').evaluate((drawing) => drawing.scrollIntoView({ block: 'end' }));
        hidden = await outside(page, ['#c', 'svg.arrows.second']);
      }
      assert.deepEqual(hidden, []);
      await picture(page, `narrow-${width}-arrows`);
      await page.locator('#nodes').evaluate((table) => table.scrollIntoView());
      await picture(page, `narrow-${width}-letters`);
    });
    tell(`${width} pixels`);
  }
  await withPage({ viewport: { width: 1280, height: 720 } }, async (page) => {
    await page.goto(address);
    await ready(page);
    await page.click('#tab-train');
    assert.deepEqual(await outside(page, ['#c', '.maps']), []);
    await page.click('#tab-tour');
    await page.getByRole('button', { name: 'Set up: Why' }).click();
    await page.locator('#words input').first().waitFor();
    assert.deepEqual(await outside(page, ['#scene', '#words', '#diagram']), []);
    await page.click('#tab-tour');
    await page.getByRole('button', { name: 'Set up: What' }).click();
    await page.waitForFunction(() => document.querySelector('#summary').textContent.startsWith('At c = 10 '));
    assert.deepEqual(await outside(page, ['#scene', '#c', '#summary', '.maps']), []);
    await picture(page, 'scene');
    await page.click('#tab-tour');
    await page.getByRole('button', { name: 'Set up: Two streams' }).click();
    await page.locator('svg.arrows.second').waitFor();
    assert.deepEqual(await outside(page, ['#scene', '#c', '#summary', 'svg.arrows']), []);
    await picture(page, 'scene-streams');
  });
  tell('1280 x 720: what a scene speaks of is on the screen');
  await withPage({ colorScheme: 'dark' }, async (page) => {
    await page.goto(address);
    await quick(page, 'dark');
    const light = await page.evaluate(() => Math.min(...getComputedStyle(document.body).color.match(/\d+/g).map(Number)));
    assert.ok(light > 200, 'text is light on dark');
  });
  tell('dark mode');
  const model = (name, architecture) => ({ name, bytes: readFileSync(join(folder, `cumulative-sum-${architecture}.safetensors`)).toString('base64') });
  const chosen = (page) => page.evaluate(() => ['task', 'first', 'second', 'width', 'depth', 'lr', 'seed'].map((id) => document.getElementById(id).value).join());
  for (const width of [1300, 390]) {
    await withPage({ viewport: { width, height: 844 } }, async (page) => {
      await page.goto(carrying({ models: [model('a-model-of-mine', 'positional'), model('another_model_of_mine.safetensors', 'standard')] }));
      await page.waitForFunction(() => document.querySelector('#summary').textContent.startsWith('At c = 1 positional'));
      assert.equal(await chosen(page), 'cumulative-sum,positional,standard,,2,,');
      assert.match(await page.locator('#model-first .hint').textContent(), /^length 8, width 32, 2 layers, 2 heads, /);
      assert.match(await page.locator('#model-second .hint').textContent(), /^length 8, width 8, 2 layers, 2 heads, /);
      assert.deepEqual(await page.locator('#nodes thead th').allTextContents(), ['node', 'input', 'truth', 'positional', 'standard']);
      assert.deepEqual(await brokenWords(page), []);
      await noSideScroll(page);
      assert.ok(!page.url().includes('width'), page.url());
      await picture(page, `given-${width}`);
      await page.click('#reset');
      assert.equal(await chosen(page), 'cumulative-sum,positional,standard,16,2,0.002,0');
    });
    tell(`settings of models that the page carries, ${width} pixels`);
  }
  await withPage({}, async (page) => {
    await page.goto(carrying({ models: [model('mine', 'positional')], program: { name: 'mine', text: own, n: 5, parameters: '' } }));
    const loaded = () => page.waitForFunction(() => document.querySelector('#model-first h2')?.textContent === 'Attention of positional (mine)');
    await loaded();
    assert.equal(await chosen(page), 'cumulative-sum,positional,standard,32,2,0.002,0');
    await page.waitForFunction(() => document.querySelector('#model-second .hint').textContent.startsWith('length 8, width 32, 2 layers'));
    await page.click('#reset');
    await page.waitForFunction(() => document.querySelector('#model-first h2').textContent === 'Attention of positional');
    await page.click('#given-models');
    await loaded();
    await page.click('#tab-algorithms');
    await page.waitForFunction(() => document.querySelectorAll('#words tbody tr').length === 5 && document.querySelector('#failure').textContent.startsWith('✓'));
    assert.equal(await page.locator('#source').inputValue(), own);
    await page.locator('#program').selectOption('sort');
    await page.waitForFunction(() => document.querySelector('#source').value.includes('program sort'));
  });
  tell('models and a program that the page carries');
  const server = createServer((request, response) => response.setHeader('content-type', 'text/html').end(readFileSync(file)));
  await new Promise((done) => { server.listen(0, '127.0.0.1', done); });
  const served = `http://127.0.0.1:${server.address().port}/`;
  await withPage({ served }, async (page) => {
    await page.goto(`${served}#tab=algorithms&program=cumulative-sum&n=4`);
    await page.waitForFunction(() => /^2 rounds/.test(document.querySelector('#program-status').textContent));
  });
  server.close();
  tell('served over http, a setting from the link');
} finally {
  await browser.close();
  rmSync(folder, { recursive: true });
}
