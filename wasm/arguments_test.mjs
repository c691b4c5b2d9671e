// Arguments of the wrong type, which would be read as addresses. Needs no build:
//   node wasm/arguments_test.mjs
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

import { checkArguments } from './engine.mjs';

// As many as the C function has, where bytes and rows count twice.
const header = readFileSync(new URL('../src/posattn/playground/playground.h', import.meta.url), 'utf8');
const right = {
  catalogue: [], program_text: ['sort'], train: ['width=8'], load: [new Uint8Array(4), 'a name'], save: [0],
  advance: [0, 20], errors: [0, 'c=1', 20, 0], sample: [0, 1, 0, 0], answer: [0, [1, 2]],
  attention: [0, new Float64Array(2)], compile: ['output x', 8, '', 0], draw: [0, 1, 0], words: [0, [1]],
  trace: [0, [1]], run: [0, [1]], verify: [0, 50, 0], noise: [0, 0.1, 0],
};

test('every argument of every function', () => {
  for (const [name, values] of Object.entries(right)) {
    checkArguments(name, values);
    values.forEach((value, i) => {
      for (const wrong of [1e9, 'text', null, undefined, {}, true, Symbol('s'), 10n]) {
        if (typeof wrong === typeof value && typeof value !== 'object') continue;
        const given = Object.assign([...values], { [i]: wrong });
        assert.throws(() => checkArguments(name, given),
          (error) => error instanceof TypeError && /^\w+: \w+ is of type \w+, expected .{6,}$/.test(error.message));
      }
    });
  }
});

test('the functions are those of playground.h', () => {
  const declared = [...header.matchAll(/^int32_t play_(\w+)\(([^)]*)\)/gm)]
    .filter(([, name]) => !['text_size', 'numbers_count', 'describe'].includes(name));
  assert.deepEqual(declared.map(([, name]) => name).sort(), Object.keys(right).sort());
  for (const [, name, list] of declared) {
    const count = list === 'void' ? 0 : list.split(',').length;
    const twice = right[name].filter((value) => typeof value === 'object').length;
    assert.equal(right[name].length + twice, count, name);
  }
});
