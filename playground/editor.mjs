// The editor of programs: a text area over a copy of its text with colours, line numbers next to it,
// and a message under the line that is wrong.
import { make } from './dom.mjs';

const keywords = new Set(('program task parameter word let table edges for if else receive permute send output assert procedure in below down to up '
  + 'from input same min max xor and or not').split(' '));
const parts = /(#.*)|([A-Za-z_][\w-]*)|(\d+(?:\.\d+)?)|([^#A-Za-z_\d]+)/g;

function coloured(line) {
  return [...line.matchAll(parts)].map(([all, comment, name, digits]) => {
    if (comment) return make('span', { className: 'comment', textContent: all });
    if (keywords.has(name)) return make('span', { className: 'keyword', textContent: all });
    if (digits) return make('span', { className: 'digits', textContent: all });
    return all;
  });
}

/** `onChange()`: the text was changed by hand. */
export function makeEditor(place, labelledBy, onChange) {
  const text = make('textarea', { id: 'source', spellcheck: false, wrap: 'off', autocapitalize: 'off', autocomplete: 'off',
    'aria-labelledby': labelledBy, 'aria-describedby': 'source-problem' });
  const copy = make('pre', { className: 'copy', 'aria-hidden': 'true' });
  const numbers = make('pre', { className: 'numbers', 'aria-hidden': 'true' });
  const problem = make('p', { id: 'source-problem', className: 'source-problem', role: 'alert', hidden: true });
  const sheet = make('div', { className: 'sheet' }, copy, text, problem);
  place.replaceChildren(make('div', { className: 'editor' }, numbers, sheet));
  let wrong = 0;
  let marked = [];

  function show() {
    const lines = text.value.split('\n');
    const kind = (number) => (number === wrong ? 'wrong' : marked.includes(number) ? 'now' : '');
    copy.replaceChildren(...lines.map((line, i) => make('div', { className: kind(i + 1) }, ...coloured(line), '\n')));
    numbers.textContent = lines.map((_, i) => (i + 1 === wrong ? `✗ ${i + 1}` : String(i + 1))).join('\n');
    // As many lines as there are, and room for a message under the last one.
    text.rows = Math.max(lines.length, 12) + 4;
    const longest = Math.max(...lines.map((line) => line.length));
    sheet.style.setProperty('--columns', `${longest + 2}ch`);
  }

  function clear() {
    wrong = 0;
    marked = [];
    problem.hidden = true;
    text.removeAttribute('aria-invalid');
  }

  text.oninput = () => {
    clear();
    show();
    onChange();
  };
  return {
    value: () => text.value,
    set(value) {
      text.value = value;
      clear();
      show();
    },
    clear() {
      clear();
      show();
    },
    /** Marks the lines of these numbers, those of the round that is shown. */
    mark(numbers) {
      if (marked.join() === numbers.join()) return;
      marked = numbers;
      show();
    },
    /** An error of the library: {problem, expected, hint, line}; without a line it stands at the top. */
    fail({ message, problem: what, expected, hint, line }) {
      wrong = line > 0 ? line : 0;
      text.setAttribute('aria-invalid', 'true');
      const place = wrong ? `Line ${wrong}: ` : '';
      problem.replaceChildren(place + (what ?? message).replace(/^program\.par:\d+:\d+: /, ''),
        ...(expected ? [make('span', { textContent: `expected ${expected}` })] : []),
        ...(hint ? [make('span', { textContent: `Hint: ${hint}` })] : []));
      problem.hidden = false;
      problem.style.setProperty('--line', wrong);
      show();
    },
  };
}
