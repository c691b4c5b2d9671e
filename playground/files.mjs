// Loading a model's file, by choice or by drop, and saving one.
import { make } from './dom.mjs';

/** `onLoad(bytes, name)`, `onSave()`. Gives the buttons, dropOn(area) and download(bytes, name). */
export function modelFiles(name, onLoad, onSave) {
  const take = async (file) => {
    if (file) onLoad(new Uint8Array(await file.arrayBuffer()), file.name);
  };
  const choose = make('input', { type: 'file', id: `load-${name}`, onchange: () => take(choose.files[0]).then(() => { choose.value = ''; }) });
  return {
    element: make('div', { className: 'controls' },
      make('button', { type: 'button', id: `save-${name}`, textContent: 'Save model', onclick: onSave }),
      make('label', {}, 'Load a model file, or drop it here ', choose)),
    dropOn(area) {
      area.ondragover = (event) => {
        event.preventDefault();
        area.classList.add('drop');
      };
      area.ondragleave = () => area.classList.remove('drop');
      area.ondrop = (event) => {
        event.preventDefault();
        area.classList.remove('drop');
        take(event.dataTransfer.files[0]);
      };
    },
    download(bytes, fileName) {
      const address = URL.createObjectURL(new Blob([bytes]));
      make('a', { href: address, download: fileName }).click();
      setTimeout(() => URL.revokeObjectURL(address), 1000);
    },
  };
}
