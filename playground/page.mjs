// The page: tabs, what the address says, and the parts that do the work.
import { makeAlgorithms } from './algorithms.mjs';
import { compiledModule } from './client.mjs';
import { element, say } from './dom.mjs';
import { givenModels, givenProgram } from './given.mjs';
import { readLink, writeLink } from './link.mjs';
import { makeTabs } from './tabs.mjs';
import { makeTour } from './tour.mjs';
import { makeTrain } from './train.mjs';

const given = readLink();
// A page that carries something begins with it.
given.tab ??= givenModels.length > 0 ? 'train' : givenProgram ? 'algorithms' : 'tour';
let train = null;
let algorithms = null;
let compiledOnce = false;

const tabs = makeTabs(['tour', 'train', 'algorithms'], (name) => {
  if (!train) return;
  if (name === 'algorithms' && !compiledOnce) {
    compiledOnce = true;
    algorithms.apply({});
  }
  keepLink();
  train.redraw();
  algorithms.redraw();
});

function keepLink() {
  if (!train) return;
  const part = { train, algorithms }[tabs.current()];
  writeLink({ tab: tabs.current(), ...(part ? part.values() : {}) });
}

async function copyLink(button) {
  keepLink();
  const { textContent } = button;
  // A page opened from a folder may be refused the clipboard; the address bar has the link all the same.
  const copied = await navigator.clipboard?.writeText(location.href).then(() => true, () => false);
  say(button, copied ? 'Copied' : 'See address');
  setTimeout(() => say(button, textContent), 1500);
}

function open(values) {
  if (values.tab === 'algorithms') {
    compiledOnce = true;
    algorithms.apply(values);
  } else if (values.tab === 'train') {
    train.apply(values);
  }
  tabs.show(values.tab);
}

element('what').onclick = (event) => {
  event.preventDefault();  // the address has the settings
  tabs.show('tour');
};

tabs.show(given.tab);
let started;
const ready = new Promise((done) => { started = done; });
makeTour(async (scene) => {
  await ready;
  if (scene.keep && train.has(scene.set)) tabs.show(scene.tab);
  else open({ tab: scene.tab, ...scene.set });
  if (scene.scale) train.setScale(scene.scale);
  train.setRunning(Boolean(scene.run));
});
try {
  const module = await compiledModule();
  algorithms = makeAlgorithms(module, (catalogue) => {
    train = makeTrain(module, catalogue, keepLink);
    train.apply(given);
    if (givenModels.length > 0 && given.task === undefined) train.loadGiven();
    if (given.tab === 'algorithms') open(given);
    else tabs.show(given.tab);
    started();
    for (const id of ['share', 'share-program']) element(id).onclick = () => copyLink(element(id));
    window.addEventListener('hashchange', () => open({ tab: 'train', ...readLink() }));
  }, keepLink);
} catch (error) {
  say(element('unable'), `This browser cannot run the playground: ${error.message}`);
}
