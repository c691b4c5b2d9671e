// Tests of the WebAssembly build in node, or of the one inside a playground. With a native build of the program,
// losses are compared to the last bit, and what there is to choose from:
//   node wasm/engine_test.mjs build/wasm/posattn.wasm build/release/posattn
//   node wasm/engine_test.mjs docs/playground/index.html build/release/posattn
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { embeddedModule } from '../playground/embedded.mjs';
import { unpacked } from '../playground/lzma.mjs';
import { EngineError, makeEngine } from './engine.mjs';

const [file, native] = process.argv.slice(2);
const module = file.endsWith('.html') ? unpacked(Buffer.from(embeddedModule(readFileSync(file, 'utf8')), 'base64')) : readFileSync(file);
const engine = await makeEngine(module, (line) => process.stderr.write(line));
const older = `${file} is older than the sources${file.endsWith('.html') ? ': scripts/playground_page makes it' : ''}`;

const small = { samples: 50, batch: 50, epochs: 200, width: 16, 'mlp-width': 16, lr: 0.002,
  'validation-samples': 10, 'test-samples': 10, 'validate-every': 0, 'test-every': 0, fresh: true };

// 200 steps, each an epoch of its own.
function losses(settings) {
  const model = engine.train(settings);
  const all = [];
  while (all.length < settings.epochs) {
    const { epochs, problem } = model.advance(20);
    assert.equal(problem, '');
    all.push(...epochs.map((epoch) => epoch.loss));
  }
  assert.equal(model.advance(1).epochs.length, 0);
  model.free();
  return all;
}

function nativeLosses(settings) {
  const folder = mkdtempSync(join(tmpdir(), 'posattn-wasm-'));
  try {
    const set = Object.entries(settings).flatMap(([key, value]) => ['--set', `${key}=${value}`]);
    execFileSync(native, ['train', ...set, '--set', 'device=cpu', '--threads', '1', '--out', folder],
      { env: { ...process.env, POSATTN_ISA: 'x86-64-v2', POSATTN_PRODUCTS: 'portable' }, stdio: 'pipe' });
    return readFileSync(join(folder, `${settings.architecture}-seed0`, 'metrics.jsonl'), 'utf8').trim().split('\n')
      .map((line) => JSON.parse(line).train_loss);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

for (const settings of [
  { ...small, task: 'cumulative-sum', architecture: 'positional' },
  { ...small, task: 'cumulative-sum', architecture: 'standard' },
  { ...small, task: 'sort', architecture: 'relative' },
  { ...small, task: 'recall', architecture: 'two-streams', depth: 1, heads: 1, schedule: 'constant' },
]) {
  const name = `${settings.task} ${settings.architecture}`;
  test(`${name}: 200 losses as in the native build, to the last bit`, { skip: native ? false : 'no native build' }, () => {
    const ours = losses(settings);
    assert.ok(ours.at(-1) < ours[0], 'training must lower the loss');
    assert.deepEqual(ours, nativeLosses(settings), older);
  });
}

test('tasks and architectures are those of the native build', { skip: native ? false : 'no native build' }, () => {
  const list = (command) => JSON.parse(execFileSync(native, [command, '--json']));
  const { tasks, architectures } = engine.catalogue();
  const named = (all) => all.map(({ name, description }) => ({ name, description }));
  // But those of pairs of nodes, which a page has no room for.
  const ofNodes = list('tasks').filter((task) => task.pair_columns + task.pair_classes === 0);
  assert.deepEqual(named(tasks), named(ofNodes), older);
  assert.deepEqual(named(architectures), named(list('presets').filter(({ name }) => name !== 'structural')), older);
});

test('programs are those of programs/', () => {
  const folder = new URL('../programs/', import.meta.url);
  const names = readdirSync(folder).filter((name) => name.endsWith('.par')).map((name) => name.slice(0, -4));
  assert.deepEqual(engine.catalogue().programs.map(({ name }) => name).sort(), names.sort(), older);
  for (const name of names) assert.equal(engine.programText(name), readFileSync(new URL(`${name}.par`, folder), 'utf8'), older);
});

test('what the library throws arrives as a message', () => {
  assert.throws(() => engine.train({ task: 'cumulative-summ' }),
    (error) => error instanceof EngineError && error.problem.includes("'cumulative-summ'") &&
      error.hint.includes('cumulative-sum'));
  assert.throws(() => engine.train({ width: 'many' }), EngineError);
  assert.throws(() => engine.load(new Uint8Array(40), 'zeros.safetensors'), EngineError);
  // Above 32 bits: refused, never cut off.
  assert.throws(() => engine.train({ samples: 2 ** 31, batch: 10 }), EngineError);
  assert.throws(() => engine.train({ width: 65536, 'mlp-width': 65536 }), EngineError);
  assert.equal(engine.train(small).about.task, 'cumulative-sum');  // and the engine goes on
});

test('an argument of the wrong type is refused', () => {
  assert.throws(() => engine.programText(1e9), /^TypeError: program_text: name is of type number, expected a text$/);
  assert.throws(() => engine.compile(1e9, 8), TypeError);
  assert.ok(engine.programText('sort').includes('program'));  // and the engine goes on
});

test('errors, attention, answers and files of a model', () => {
  const model = engine.train({ ...small, task: 'cumulative-max', architecture: 'standard' });
  model.advance(0);
  const errors = model.errors('c=1,10', 20);
  assert.deepEqual(errors.map((error) => error.x), [1, 10]);
  assert.ok(errors[1].loss > errors[0].loss);

  const { row, truth } = model.sample(2, 3);
  assert.deepEqual(row, model.sample(1, 3).row.map((x) => 2 * x));
  const answer = model.answer(row);
  assert.deepEqual(answer.truth, truth);
  const { depth, heads, real_nodes, scratch_nodes } = model.about;
  const nodes = real_nodes + scratch_nodes;
  const attention = model.attention(row);
  assert.equal(attention.length, depth * heads * nodes * nodes);
  const sum = attention.subarray(0, nodes).reduce((a, b) => a + b, 0);
  assert.ok(Math.abs(sum - 1) < 1e-5);

  const copy = engine.load(model.save(), 'copy.safetensors');
  assert.deepEqual(copy.answer(row), answer);
  assert.throws(() => copy.advance(1), EngineError);
  assert.throws(() => copy.answer([1, 2]), EngineError);
});

test('letters and numbers: attention of two streams does not move, and the truth is known', () => {
  const model = engine.train({ ...small, task: 'recall', architecture: 'two-streams', depth: 1, heads: 1, schedule: 'constant' });
  assert.equal(model.about.letters[1], 'b');
  const { row, truth } = model.sample(1, 0);
  const large = model.sample(10, 0);
  assert.deepEqual([...large.row].filter((_, i) => i % 2 === 0), [...row].filter((_, i) => i % 2 === 0));
  assert.deepEqual(model.attention(large.row), model.attention(row));
  assert.ok(Math.abs(large.truth[0] - 10 * truth[0]) < 1e-5);
  row[0] = row[4];  // asks for the letter of the second item
  assert.equal(model.answer(row).truth[0], Math.fround(row[5]));
  assert.ok(model.answer(row).outputs.subarray(1).every(Number.isNaN));
});

test('sort compiles, runs, holds, and breaks under noise', () => {
  const program = engine.compile(engine.programText('sort'), 8);
  assert.equal(program.about.processors, 8);
  const row = [5, 3, 8, 1, 9, -2, 7, 4];
  const sorted = [-2, 1, 3, 4, 5, 7, 8, 9];
  assert.deepEqual([...program.run(row).network], sorted);
  assert.deepEqual([...program.run(row).program], sorted);

  // [rounds + 1, processors, words, 2]: the network holds the program's words.
  const words = program.words(row);
  const count = (program.about.rounds.length + 1) * 8 * program.about.words.length * 2;
  assert.equal(words.length, count);
  let held = 0;
  for (let i = 0; i < count; i += 2) {
    if (Number.isNaN(words[i + 1])) continue;
    ++held;
    assert.equal(words[i + 1], words[i]);
  }
  assert.ok(held >= 8 * (program.about.rounds.length + 1));

  assert.equal(program.verify(50).holds, true);
  program.noise(0.3, 1);
  assert.notDeepEqual([...program.run(row).network], sorted);
  const broken = program.verify(50);
  assert.equal(broken.holds, false);
  assert.ok(broken.counter_example.input.length === 8);
  program.noise(0);
  assert.deepEqual([...program.run(row).network], sorted);
});

test('a wrong program names its line', () => {
  const source = 'program broken\nword x : real = input\nreceive y = x frm i - 1\noutput x\n';
  assert.throws(() => engine.compile(source, 4), (error) => error instanceof EngineError && error.line === 3);
});

test('every program of the library compiles and runs', () => {
  for (const { name } of engine.catalogue().programs) {
    const program = engine.compile(engine.programText(name), 4);
    const input = program.draw(1);
    const { network, program: exact } = program.run(input);
    assert.equal(network.length, exact.length, name);
    assert.equal(program.verify(5).holds, true, name);
    program.free();
  }
});
