// Draws every formula of the page with KaTeX.
document.addEventListener('DOMContentLoaded', () => {
  for (const formula of document.querySelectorAll('span.math')) {
    const text = formula.textContent;
    katex.render(text.slice(2, -2), formula, { displayMode: text.startsWith('\\['), throwOnError: false });
  }
});
