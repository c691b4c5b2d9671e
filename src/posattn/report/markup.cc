#include "posattn/report/markup.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "posattn/base/text.h"

namespace posattn {
namespace {

// Bytes of the well-formed character at the start of `text` (never empty), or 0 when it is broken
// or a character that XML 1.0 forbids.
size_t character_size(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const bool control =
      (lead < 0x20 && lead != '\t' && lead != '\n' && lead != '\r') || lead == 0x7f;
  const bool no_character = text.starts_with("\xef\xbf\xbe") || text.starts_with("\xef\xbf\xbf");
  return control || no_character ? 0 : utf8_size(text);
}

constexpr double letter = 0.53;  // mean width of a letter, as a share of the size

}  // namespace

std::string valid_text(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  while (!text.empty()) {
    const size_t size = character_size(text);
    valid += size == 0 ? "\xef\xbf\xbd" : text.substr(0, size);
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return valid;
}

std::string escape_markup(std::string_view text) {
  using Entity = std::pair<char, const char*>;
  constexpr Entity entities[] = {
      {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}};
  std::string escaped;
  for (const char c : valid_text(text)) {
    const auto* entity = std::ranges::find(entities, c, &Entity::first);
    escaped += entity == std::end(entities) ? std::string(1, c) : entity->second;
  }
  return escaped;
}

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
