#include "posattn/report/plot/text_lines.h"

#include <algorithm>
#include <sstream>

namespace posattn {
namespace {

constexpr double letter = 0.53;  // mean width of a letter, as a share of the size

}  // namespace

double text_width(std::string_view text, double size) {
  const auto letters = std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80; });
  return letter * size * static_cast<double>(letters);
}

std::vector<std::string> wrapped(const std::string& text, double size, double width) {
  std::vector<std::string> lines;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (lines.empty() || text_width(lines.back() + " " + word, size) > width) {
      lines.push_back(word);
    } else {
      lines.back() += " " + word;
    }
  }
  return lines;
}

}  // namespace posattn
