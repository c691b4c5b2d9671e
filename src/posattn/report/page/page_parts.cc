#include "posattn/report/page/page_parts.h"

#include <fmt/format.h>

#include <cctype>
#include <cmath>

#include "posattn/base/embedded_file.h"
#include "posattn/report/markup.h"
#include "posattn/report/plot/line_style.h"

namespace posattn {

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
      "<title>{0}</title>\n<style>\n{1}{2}</style>\n{4}</head>\n<body>\n<h1>{0}</h1>\n{3}"
      "</body>\n</html>\n",
      escape_markup(title), page_asset("page.css"), style_colours("style", "background", body),
      body, head);
}

}  // namespace posattn
