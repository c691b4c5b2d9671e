#include "posattn/report/steps/walk.h"

#include <fmt/format.h>

#include <algorithm>

#include "posattn/base/error.h"

namespace posattn {

void check_walk_size(int64_t nodes, int64_t numbers) {
  if (nodes <= most_walk_nodes && numbers <= most_walk_numbers) return;
  throw Error(ExitCode::usage,
              fmt::format("a page of {} nodes with {} numbers in all steps", nodes, numbers),
              fmt::format("at most {} nodes and {} numbers", most_walk_nodes, most_walk_numbers),
              "a shorter input shows the same pattern");
}

std::string short_list(std::span<const double> values, const std::vector<std::string>& letters) {
  constexpr size_t most = 16;
  std::string text;
  for (size_t k = 0; k < std::min(values.size(), most); ++k) {
    const bool has_letter = values[k] >= 0 && values[k] < static_cast<double>(letters.size());
    text += k == 0 ? "" : ", ";
    text += has_letter ? letters[static_cast<size_t>(values[k])] : fmt::format("{:.4g}", values[k]);
  }
  return values.size() > most ? text + ", …" : text;
}

}  // namespace posattn
