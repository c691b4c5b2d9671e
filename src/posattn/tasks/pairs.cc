#include "posattn/tasks/pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace posattn {
namespace {

std::string place_of(const TaskShape& shape, int64_t pair) {
  const int64_t n = shape.real_nodes;
  return fmt::format("the pair of nodes {} and {} in sample {}", pair / n % n, pair % n,
                     pair / (n * n));
}

}  // namespace

template <class T>
std::optional<PairFault> fault_of_pairs(const TaskShape& shape, std::span<const T> numbers,
                                        std::span<const int32_t> classes) {
  const auto bad = std::ranges::find_if(numbers, [](T value) { return !std::isfinite(value); });
  if (bad != numbers.end()) {
    return PairFault{fmt::format("{} for {}", *bad,
                                 place_of(shape, (bad - numbers.begin()) / shape.pair_columns)),
                     "finite numbers"};
  }
  const auto unknown = std::ranges::find_if(
      classes, [&](int32_t value) { return value < 0 || value >= shape.pair_classes; });
  if (unknown == classes.end()) return std::nullopt;
  return PairFault{
      fmt::format("class {} of {}", *unknown, place_of(shape, unknown - classes.begin())),
      fmt::format("0 to {}", shape.pair_classes - 1)};
}

template std::optional<PairFault> fault_of_pairs(const TaskShape&, std::span<const float>,
                                                 std::span<const int32_t>);
template std::optional<PairFault> fault_of_pairs(const TaskShape&, std::span<const double>,
                                                 std::span<const int32_t>);

}  // namespace posattn
