// The class that a node's scores decide on.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

namespace posattn {

// -1 where no class has a higher score than every other: two are equal, or one is NaN.
inline int32_t decided_class(std::span<const float> scores) {
  const auto best = std::ranges::max_element(scores);
  for (auto other = scores.begin(); other != scores.end(); ++other) {
    if (other != best && !(*other < *best)) return -1;
  }
  return static_cast<int32_t>(best - scores.begin());
}

}  // namespace posattn
