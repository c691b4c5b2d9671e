// The library as JavaScript sees it: one WebAssembly module, the few calls of its C library that it
// makes, and the functions of src/posattn/playground/playground.h with strings and arrays.
const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** What the library refused: `problem`, `expected`, `hint`, and `line` and `column` of a program. */
export class EngineError extends Error {
  constructor(details) {
    super(details.message);
    Object.assign(this, { name: 'EngineError', ...details });
  }
}

// What the functions of playground.h take. A number in place of a text would be read as an address.
const parameters = {
  catalogue: {},
  program_text: { name: 'text' },
  train: { settings: 'text' },
  load: { bytes: 'bytes', name: 'text' },
  save: { model: 'number' },
  advance: { model: 'number', milliseconds: 'number' },
  errors: { model: 'number', axisValues: 'text', samples: 'number', seed: 'number' },
  sample: { model: 'number', c: 'number', index: 'number', seed: 'number' },
  answer: { model: 'number', row: 'row' },
  attention: { model: 'number', row: 'row' },
  compile: { source: 'text', length: 'number', parameters: 'text', sharpness: 'number' },
  draw: { program: 'number', c: 'number', seed: 'number' },
  words: { program: 'number', row: 'row' },
  trace: { program: 'number', row: 'row' },
  run: { program: 'number', row: 'row' },
  verify: { program: 'number', samples: 'number', seed: 'number' },
  noise: { program: 'number', noise: 'number', seed: 'number' },
};
const kinds = {
  text: ['a text', (value) => typeof value === 'string'],
  number: ['a number', (value) => typeof value === 'number'],
  bytes: ['a Uint8Array', (value) => value instanceof Uint8Array],
  row: ['an array of numbers', (value) => Array.isArray(value) || ArrayBuffer.isView(value)],
};

/** Throws a TypeError of one line unless the values are what the function takes. */
export function checkArguments(name, values) {
  Object.entries(parameters[name]).forEach(([parameter, kind], i) => {
    const [expected, fits] = kinds[kind];
    if (fits(values[i])) return;
    const given = values[i] === null ? 'null' : typeof values[i];
    throw new TypeError(`${name}: ${parameter} is of type ${given}, expected ${expected}`);
  });
}

const badDescriptor = 8;
const unknownCall = 52;

// WASI: a clock, a way to say last words, and no files.
function systemCalls(memory, log) {
  const view = () => new DataView(memory().buffer);
  const calls = {
    clock_time_get(id, precision, result) {
      view().setBigUint64(result, BigInt(Math.round(performance.now() * 1e6)), true);
      return 0;
    },
    environ_sizes_get(count, bytes) {
      view().setUint32(count, 0, true);
      view().setUint32(bytes, 0, true);
      return 0;
    },
    environ_get: () => 0,
    fd_prestat_get: () => badDescriptor,
    fd_write(descriptor, parts, count, written) {
      let total = 0;
      for (let i = 0; i < count; ++i) {
        const at = view().getUint32(parts + 8 * i, true);
        const size = view().getUint32(parts + 8 * i + 4, true);
        log(decoder.decode(new Uint8Array(memory().buffer, at, size)));
        total += size;
      }
      view().setUint32(written, total, true);
      return 0;
    },
    proc_exit(code) {
      throw new Error(`the engine ended (${code})`);
    },
  };
  return (name) => calls[name] ?? (() => unknownCall);
}

/** `module`: a WebAssembly.Module, or the bytes of one. */
export async function makeEngine(module, log = () => {}) {
  const compiled = module instanceof WebAssembly.Module ? module : await WebAssembly.compile(module);
  let memory;
  const call = systemCalls(() => memory, log);
  const imports = {};
  for (const { module: from, name } of WebAssembly.Module.imports(compiled)) {
    (imports[from] ??= {})[name] = call(name);
  }
  const { exports } = await WebAssembly.instantiate(compiled, imports);
  memory = exports.memory;
  exports._initialize();

  const textBytes = () =>
    new Uint8Array(memory.buffer, exports.play_text(), exports.play_text_size()).slice();
  const text = () => decoder.decode(textBytes());
  const json = () => JSON.parse(text());
  const numbers = () =>
    new Float64Array(memory.buffer, exports.play_numbers(), exports.play_numbers_count()).slice();

  // Calls with arguments that lie in the module's memory while it runs: strings, rows, bytes.
  const ask = (name, ...values) => {
    checkArguments(name, values);
    const places = [];
    const place = (bytes) => {
      const at = exports.play_allocate(bytes.length);
      if (at === 0) throw new EngineError({ message: 'there is not enough memory' });
      places.push(at);
      new Uint8Array(memory.buffer, at, bytes.length).set(bytes);
      return at;
    };
    try {
      const plain = values.flatMap((value) => {
        if (typeof value === 'string') return [place(encoder.encode(value + '\0'))];
        if (value instanceof Uint8Array) return [place(value), value.length];
        if (typeof value === 'number') return [value];
        const row = Float64Array.from(value);
        return [place(new Uint8Array(row.buffer)), row.length];
      });
      const result = exports[`play_${name}`](...plain);
      if (result < 0) throw new EngineError(json());
      return result;
    } finally {
      for (const at of places) exports.play_release(at);
    }
  };
  const answer = (name, ...values) => {
    ask(name, ...values);
    return numbers();
  };

  const modelOf = (handle) => {
    const about = json();
    return {
      about,
      advance(milliseconds) {
        const count = ask('advance', handle, milliseconds);
        const all = numbers();
        const epochs = Array.from({ length: count }, (_, i) => {
          const [epoch, step, loss, rate] = all.subarray(4 * i, 4 * i + 4);
          return { epoch, step, loss, rate };
        });
        return { epochs, problem: text() };
      },
      errors(axisValues, samples, seed = 0) {
        const all = answer('errors', handle, axisValues, samples, seed);
        return Array.from({ length: all.length / 2 }, (_, i) => ({ x: all[2 * i], loss: all[2 * i + 1] }));
      },
      sample(c, index, seed = 0) {
        const count = ask('sample', handle, c, index, seed);
        const all = numbers();
        return { row: all.slice(0, count), truth: all.slice(count) };
      },
      answer(row) {
        const all = answer('answer', handle, row);
        return { outputs: all.slice(0, all.length / 2), truth: all.slice(all.length / 2) };
      },
      attention: (row) => answer('attention', handle, row),
      save() {
        ask('save', handle);
        return textBytes();
      },
      free: () => exports.play_free_model(handle),
    };
  };

  const programOf = (handle) => {
    const about = json();
    return {
      about,
      draw: (c, seed = 0) => answer('draw', handle, c, seed),
      words: (row) => answer('words', handle, row),
      trace: (row) => answer('trace', handle, row),
      run(row) {
        const all = answer('run', handle, row);
        return { network: all.slice(0, all.length / 2), program: all.slice(all.length / 2) };
      },
      verify(samples, seed = 0) {
        ask('verify', handle, samples, seed);
        return json();
      },
      noise: (noise, seed = 0) => void ask('noise', handle, noise, seed),
      free: () => exports.play_free_program(handle),
    };
  };

  return {
    catalogue() {
      ask('catalogue');
      return json();
    },
    programText(name) {
      ask('program_text', name);
      return text();
    },
    /** Settings by the names of `posattn train`: {task: 'sort', width: 16, ...}. */
    train(settings) {
      const lines = Object.entries(settings).map(([key, value]) => `${key}=${value}`);
      return modelOf(ask('train', lines.join('\n')));
    },
    load: (bytes, name) => modelOf(ask('load', bytes, name)),
    compile: (source, length, { parameters = '', sharpness = 0 } = {}) =>
      programOf(ask('compile', source, length, parameters, sharpness)),
    memoryBytes: () => memory.buffer.byteLength,
  };
}
