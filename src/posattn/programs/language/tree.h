// Many values joined two by two: the depth is that of the logarithm.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace posattn::language {

// `values` has at least one.
template <class T, class F>
T joined_as_tree(std::vector<T> values, const F& join) {
  while (values.size() > 1) {
    std::vector<T> next;
    for (size_t k = 0; k + 1 < values.size(); k += 2) {
      next.push_back(join(values[k], values[k + 1]));
    }
    if (values.size() % 2 == 1) next.push_back(std::move(values.back()));
    values = std::move(next);
  }
  return std::move(values[0]);
}

}  // namespace posattn::language
