// The playground in Firefox (Debian's firefox-esr, or the program that FIREFOX names), by its own remote
// protocol, Marionette: messages "length:[type, id, command, parameters]" over a socket.
//   node playground/firefox_test.mjs PLAYGROUND.html [FOLDER for pictures]
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const [file, pictures] = process.argv.slice(2);
if (!file) {
  console.error('usage: node playground/firefox_test.mjs PLAYGROUND.html [FOLDER]');
  process.exit(2);
}
const address = pathToFileURL(resolve(file)).href;
const pause = (milliseconds) => new Promise((done) => { setTimeout(done, milliseconds); });

async function freePort() {
  const server = createServer();
  await new Promise((done) => { server.listen(0, '127.0.0.1', done); });
  const { port } = server.address();
  await new Promise((done) => { server.close(done); });
  return port;
}

async function connected(port) {
  for (let i = 0; i < 300; ++i) {
    const socket = connect(port, '127.0.0.1');
    const there = await new Promise((done) => {
      socket.once('connect', () => done(true));
      socket.once('error', () => done(false));
    });
    if (there) return socket;
    await pause(200);
  }
  throw new Error('Firefox does not listen');
}

/** ask(command, parameters) gives the answer's value. */
function marionette(socket) {
  let rest = Buffer.alloc(0);
  let last = 0;
  const waiting = new Map();
  socket.on('data', (data) => {
    rest = Buffer.concat([rest, data]);
    for (;;) {
      const colon = rest.indexOf(':');
      const end = colon + 1 + Number(rest.toString('latin1', 0, Math.max(colon, 0)));
      if (colon < 0 || rest.length < end) return;
      const message = JSON.parse(rest.toString('utf8', colon + 1, end));
      rest = rest.subarray(end);
      if (!Array.isArray(message)) continue;  // the greeting
      const [, id, error, result] = message;
      const { done, failed } = waiting.get(id);
      if (error) failed(new Error(`${error.error}: ${error.message}`));
      else done(result?.value ?? result);
    }
  });
  return (command, parameters = {}) => new Promise((done, failed) => {
    const text = JSON.stringify([0, ++last, command, parameters]);
    waiting.set(last, { done, failed });
    socket.write(`${Buffer.byteLength(text)}:${text}`);
  });
}

const profile = mkdtempSync(join(tmpdir(), 'posattn-firefox-'));
const port = await freePort();
writeFileSync(join(profile, 'user.js'), `user_pref("marionette.port", ${port});\n`);
const firefox = spawn(process.env.FIREFOX ?? 'firefox-esr', ['--headless', '--marionette', '--no-remote', '--profile', profile],
  { stdio: 'ignore', env: { ...process.env, HOME: profile } });
const ended = new Promise((done) => { firefox.once('exit', done); });
try {
  const socket = await connected(port);
  const ask = marionette(socket);
  await ask('WebDriver:NewSession', { capabilities: {} });
  const page = (script) => ask('WebDriver:ExecuteScript', { script, args: [] });
  const text = (id) => page(`return document.getElementById('${id}').textContent`);
  const until = async (condition) => {
    for (let i = 0; i < 600; ++i) {
      if (await page(`return Boolean(${condition})`)) return;
      await pause(200);
    }
    assert.fail(`${condition}: ${await page('return document.body.innerText')}`);
  };
  const set = (id, value, event) => page(`const field = document.getElementById('${id}'); field.value = '${value}'; field.dispatchEvent(new Event('${event}'));`);
  const picture = async (name) => {
    if (pictures) writeFileSync(join(pictures, `firefox-${name}.png`), Buffer.from(await ask('WebDriver:TakeScreenshot', { full: false }), 'base64'));
  };

  await ask('WebDriver:Navigate', { url: `${address}#tab=train` });
  await until("document.querySelector('#nodes tbody')");
  await page("document.getElementById('go').click()");
  await until("parseInt(document.getElementById('status').textContent, 10) >= 1000");
  await page("document.getElementById('go').click()");
  await set('c', 10, 'input');
  await until("document.getElementById('summary').textContent.startsWith('At c = 10 ')");
  const [first, second] = [...(await text('summary')).matchAll(/error ([\d.e+-]+)/g)].map(([, value]) => Number(value));
  assert.ok(second > 5 * first, `${first} and ${second}`);
  await picture('train');
  console.log(`ok: trained in Firefox ${await page('return navigator.userAgent.match(/Firefox.(\\d+)/)[1]')}; at c = 10 errors ${first} and ${second}`);

  await page("document.getElementById('tab-algorithms').click()");
  await until("document.getElementById('failure').textContent.startsWith('✓')");
  await set('round', 6, 'input');
  await set('noise', 0.1, 'input');
  await until("document.getElementById('failure').textContent.startsWith('✗ Round')");
  await picture('algorithms');
  await set('program', 'k-hop', 'change');
  await set('level', 'written', 'change');
  await until("document.querySelector('#words input.letter') && document.getElementById('failure').textContent.startsWith('Messages')");
  assert.equal(await text('problem'), '');
  console.log('ok: sort and k-hop');
  socket.destroy();
} finally {
  firefox.kill();
  await ended;
  rmSync(profile, { recursive: true, force: true });
}
