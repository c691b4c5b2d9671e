// Tabs as screen readers and keyboards know them: arrows, Home and End move between them.
import { element } from './dom.mjs';

/** `onShow(name)` is called whenever another tab is shown. Gives show(name) and current(). */
export function makeTabs(names, onShow) {
  let current = names[0];
  const show = (name) => {
    current = names.includes(name) ? name : names[0];
    for (const each of names) {
      const tab = element(`tab-${each}`);
      tab.setAttribute('aria-selected', String(each === current));
      tab.tabIndex = each === current ? 0 : -1;
      element(each).hidden = each !== current;
    }
    onShow(current);
  };
  for (const name of names) {
    element(`tab-${name}`).onclick = () => show(name);
    element(`tab-${name}`).onkeydown = (event) => {
      const at = names.indexOf(name);
      const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: names.length - 1 }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      const next = names[(to + names.length) % names.length];
      show(next);
      element(`tab-${next}`).focus();
    };
  }
  return { show, current: () => current };
}
