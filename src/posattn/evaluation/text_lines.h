// The lines of a text, wherever it was written: a byte order mark is left out, an empty last line
// is none.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

namespace posattn {

// Without their "\n"; a "\r" before it stays.
inline std::vector<std::string_view> lines_of(std::string_view text) {
  constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
  if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
  std::vector<std::string_view> lines;
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find('\n', start), text.size());
    lines.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return lines;
}

}  // namespace posattn
