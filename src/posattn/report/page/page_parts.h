// What the pages have in common: frame, style sheet, small pieces of HTML.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace posattn {

// The whole page around `body`, with `title` as its heading too; the title is escaped here.
std::string html_page(std::string_view title, std::string_view body);

// These take markup: escape what comes from outside.
std::string paragraph(std::string_view text);
std::string heading(std::string_view text);
std::string details_element(std::string_view summary, std::string_view content);

// Three digits: 0.0213, 53, 2.1e-05; "not a number".
std::string three_digits(double value);
std::string plural(size_t count, std::string_view noun);  // "1 run", "2 runs"

}  // namespace posattn
