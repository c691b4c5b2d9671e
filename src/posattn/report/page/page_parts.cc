#include "posattn/report/page/page_parts.h"

#include <fmt/format.h>

#include <cctype>
#include <cmath>

#include "posattn/report/markup.h"
#include "posattn/report/plot/line_style.h"

namespace posattn {
namespace {

constexpr std::string_view style_sheet = R"css(
:root { color-scheme: light dark; --text: #1b1f24; --soft: #59636e; --page: #ffffff; --line: #d1d9e0; --code: #f3f5f7; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e6e9ec; --soft: #9aa5b1; --page: #15181c; --line: #3a424b; --code: #22272d; }
}
body { margin: 0 auto; padding: 2rem 1.5rem 4rem; max-width: 70rem; background: var(--page); color: var(--text);
  font: 16px/1.55 system-ui, sans-serif; overflow-wrap: break-word; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 1rem; }
h2 { font-size: 1.15rem; margin: 2.5rem 0 .75rem; }
h3 { font-size: 1rem; margin: 1.75rem 0 .5rem; }
a { color: inherit; }
p, .notes { max-width: 46rem; }
.notes li { margin: .6rem 0; }
.scroll { overflow-x: auto; max-width: max-content; margin: 1rem 0;
  background: linear-gradient(to right, var(--page) 30%, transparent) left / 2.5rem 100% no-repeat local,
    linear-gradient(to left, var(--page) 30%, transparent) right / 2.5rem 100% no-repeat local,
    linear-gradient(to right, var(--line), transparent) left / .8rem 100% no-repeat scroll,
    linear-gradient(to left, var(--line), transparent) right / .8rem 100% no-repeat scroll; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9rem; }
th, td { padding: .35rem .6rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { white-space: normal; vertical-align: bottom; }
th:first-child, td:first-child, .name { text-align: left; }
th:has(.dot) { white-space: nowrap; }
td:first-child, th:first-child { position: sticky; left: 0; background: var(--page); }
.group th { padding-top: .75rem; }
.group span { position: sticky; left: .4rem; }
.words { white-space: normal; min-width: 9rem; }
.dense th, .dense td { padding: .25rem .4rem; }
td small { color: var(--soft); margin-left: .6em; font-size: inherit; }
.dot { display: inline-block; width: .7em; height: .7em; border-radius: 50%; margin-right: .45em; }
.figures, .maps { display: flex; flex-wrap: wrap; gap: 1.25rem; align-items: flex-start; }
figure { margin: 0; max-width: 100%; box-sizing: border-box; border: 1px solid var(--line); border-radius: .5rem;
  padding: .5rem; overflow-x: auto; }
figcaption { color: var(--soft); font-size: .9rem; contain: inline-size; }
figure svg { display: block; }
.narrow { display: none; }
details { margin: 1rem 0; }
summary { cursor: pointer; }
pre { background: var(--code); padding: .75rem 1rem; border-radius: .4rem; overflow-x: auto; font-size: .85rem; }
@media (max-width: 50rem) {
  body { padding: 1rem 1rem 3rem; }
  .wide { display: none; }
  .narrow { display: block; }
  figure { border: 0; padding: 0; }
  th, td { padding: .35rem .45rem; }
  td small { display: block; margin: 0; }
}
@media (max-width: 22rem) { figure svg { max-width: 100%; height: auto; } }
)css";

}  // namespace

std::string style_colours(std::string_view name, std::string_view property, std::string_view page) {
  std::string light, dark;
  for (int style = 0; style < line_style_count; ++style) {
    const std::string kind = fmt::format("{}{}", name, style);
    if (page.find(kind + "\"") == std::string_view::npos) continue;
    const auto rule = [&](const std::string& colour) {
      return fmt::format(".{} {{ {}: {}; }}\n", kind, property, colour);
    };
    light += rule(line_style(style).colour);
    dark += rule(line_style(style).dark_colour);
  }
  return light + "@media (prefers-color-scheme: dark) {\n" + dark + "}\n";
}

std::string three_digits(double value) {
  if (!std::isfinite(value)) return std::isnan(value) ? "not a number" : "infinite";
  const double size = std::abs(value);
  if (size >= 100 && size < 1e6) return fmt::format("{:.0f}", value);
  return value == 0 || (size >= 0.01 && size < 100) ? fmt::format("{:.3g}", value)
                                                    : fmt::format("{:.1e}", value);
}

std::string paragraph(std::string_view text) { return fmt::format("<p>{}</p>\n", text); }

std::string heading(std::string_view text) { return fmt::format("<h2>{}</h2>\n", text); }

std::string details_element(std::string_view summary, std::string_view content) {
  return fmt::format("<details><summary>{}</summary>\n{}</details>\n", summary, content);
}

std::string drawing_in_two_shapes(std::string_view wide, std::string_view narrow) {
  return fmt::format("<div class=\"wide\">{}</div><div class=\"narrow\">{}</div>", wide, narrow);
}

std::string table_element(std::string_view name, std::string_view rows, bool dense) {
  return fmt::format(
      "<div class=\"scroll{}\" role=\"region\" aria-label=\"{}\" tabindex=\"0\"><table>\n{}"
      "</table></div>\n",
      dense ? " dense" : "", escape_markup(name), rows);
}

std::string style_dot(int style) {
  return fmt::format("<span class=\"dot style{}\"></span>", style % line_style_count);
}

std::string plural(size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string capitalised(std::string_view words) {
  std::string text(words);
  text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

std::string html_page(std::string_view title, std::string_view body, std::string_view head) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<title>{0}</title>\n<style>{1}{2}</style>\n{4}</head>\n<body>\n<h1>{0}</h1>\n{3}"
      "</body>\n</html>\n",
      escape_markup(title), style_sheet, style_colours("style", "background", body), body, head);
}

}  // namespace posattn
