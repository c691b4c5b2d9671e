// What the pages have in common: frame, style sheet, small pieces of HTML.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace posattn {

// The whole page around `body`, with `title` as its heading too; the title is escaped here. `head`
// is markup for a page's own style.
std::string html_page(std::string_view title, std::string_view body, std::string_view head = {});

// These take markup: escape what comes from outside.
std::string paragraph(std::string_view text);
std::string heading(std::string_view text);
std::string details_element(std::string_view summary, std::string_view content);

// One drawing in two shapes: the page shows the one whose text fits at full size.
std::string drawing_in_two_shapes(std::string_view wide, std::string_view narrow);

// A table that scrolls by itself where it is wider than the window; `name` says what is in it, for
// those who reach it by keyboard.
std::string table_element(std::string_view name, std::string_view rows, bool dense = false);

// The mark of a line's style (report/plot/line_style.h) before its name.
std::string style_dot(int style);

// Rules of a style sheet: the class `name`K has the colour of style K as this property. For the
// styles that `page` has.
std::string style_colours(std::string_view name, std::string_view property, std::string_view page);

// Three digits: 0.0213, 53, 2.1e-05; "not a number".
std::string three_digits(double value);
std::string plural(size_t count, std::string_view noun);  // "1 run", "2 runs"

std::string capitalised(std::string_view words);  // not empty

}  // namespace posattn
