// A worker with an engine of its own. `handlers` has a function for each type of message that it sends
// (worker.mjs lists them); stop() ends it whatever it is doing, and starts a new one.
import { element } from './dom.mjs';
import { bytesOf } from './given.mjs';
import { unpacked } from './lzma.mjs';

export async function compiledModule() {
  await new Promise((painted) => { requestAnimationFrame(() => setTimeout(painted)); });  // unpacking takes a fifth of a second
  return WebAssembly.compile(unpacked(bytesOf(element('module').textContent)));
}

let script;

export class EngineWorker {
  constructor(module, handlers) {
    Object.assign(this, { module, handlers });
    this.start();
  }

  start() {
    script ??= URL.createObjectURL(new Blob([element('worker').textContent], { type: 'text/javascript' }));
    this.worker = new Worker(script);
    this.worker.onmessage = ({ data }) => this.handlers[data.type]?.(data);
    this.worker.onerror = (event) => this.handlers.failed({ message: event.message || 'the engine ended', during: 'worker' });
    this.send('init', { module: this.module });
  }

  send(type, fields = {}) {
    this.worker.postMessage({ type, ...fields });
  }

  stop() {
    this.worker.terminate();
    this.start();
  }
}
