// Small helpers of the page: elements by id, new elements, numbers as text.
export const element = (id) => document.getElementById(id);

/** make('td', {className: 'x'}, 'text', child): an element with properties, aria-... attributes and children. */
export function make(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (key.startsWith('aria-') || key === 'role' || key === 'scope') made.setAttribute(key, value);
    else made[key] = value;
  }
  made.append(...children);
  return made;
}

export const number = (value) => {
  if (!Number.isFinite(value)) return '–';
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (size >= 1e5 || size < 1e-3) return value.toExponential(1);
  return String(Number(value.toPrecision(3)));
};

/** plural(1, 'head'): '1 head'; plural(2, 'head'): '2 heads'. */
export const plural = (count, name) => `${count} ${name}${count === 1 ? '' : 's'}`;

/** Calls `body` once in the next frame, however often it is asked to. */
export function oncePerFrame(body) {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      body();
    });
  };
}

/** Replaces a text only where it differs, so that screen readers are not told twice. */
export function say(target, text) {
  if (target.textContent !== text) target.textContent = text;
}
