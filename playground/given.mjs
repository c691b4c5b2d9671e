// What `posattn playground` put into the page: {models: [{name, bytes}], program: {name, text, n, parameters}}.
import { element } from './dom.mjs';

export const bytesOf = (base64) => Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));

const content = JSON.parse(element('given').textContent);

export const givenModels = content?.models ?? [];
export const givenProgram = content?.program ?? null;
