// The rule by which input values are drawn, and the ranges for training and for testing.
#include <fmt/format.h>

#include <cmath>

#include "posattn/base/error.h"
#include "posattn/tasks/task.h"

namespace posattn {
namespace {

// Integers must be exact in float; real values must leave room for sums and squares.
constexpr double largest_integer = 1 << 24;
constexpr double largest_value = 1e15;

// Just above 1 nearly every (a, b) would be redrawn.
constexpr double smallest_scale_above_one = 1.001;

float checked_bound(double bound, bool integers) {
  const double largest = integers ? largest_integer : largest_value;
  const double smallest = integers ? 1 : 1e-15;
  if (!(bound >= smallest && bound <= largest)) {  // also catches NaN
    throw Error(ExitCode::usage, fmt::format("value range [-{0}, {0}]", bound),
                fmt::format("a bound from {} to {}{}", smallest, largest,
                            integers ? " for integer inputs" : ""));
  }
  return static_cast<float>(bound);
}

}  // namespace

ValueRange training_range(double range, bool integers) {
  const float bound = checked_bound(range, integers);
  return {.low = -bound, .high = bound, .integers = integers};
}

ValueRange test_range(double range, double scale, bool integers) {
  const float inner = checked_bound(range, integers);
  if (!(scale > 0) || !std::isfinite(scale) || (scale > 1 && scale < smallest_scale_above_one)) {
    throw Error(
        ExitCode::usage, fmt::format("test scale {}", scale),
        fmt::format("a positive number, at most 1 or at least {}", smallest_scale_above_one));
  }
  const float outer = checked_bound(range * scale, integers);
  return {.low = -outer,
          .high = outer,
          .exclude = scale > 1 && !integers,
          .excluded_low = -inner,
          .excluded_high = inner,
          .integers = integers};
}

ValueRange mixed_range(double range, double decades, bool integers) {
  if (integers || !(decades >= 0)) {
    throw Error(
        ExitCode::usage,
        integers ? "mixed scales of whole numbers" : fmt::format("mixed scales {}", decades),
        integers ? "real numbers, which may be divided" : "0 or more powers of ten");
  }
  ValueRange mixed = training_range(range, false);
  checked_bound(range * std::pow(10, decades), false);
  mixed.decades = static_cast<float>(decades);
  return mixed;
}

void draw_values(RandomStream& random, const ValueRange& range, std::span<float> values) {
  if (range.integers) {
    const auto first = static_cast<int64_t>(std::ceil(range.low));
    const auto end = static_cast<int64_t>(std::ceil(range.high));
    const auto choices = static_cast<uint32_t>(end - first);
    for (float& value : values) value = static_cast<float>(first + random.below(choices));
    return;
  }
  float a = 0;
  float b = 0;
  do {
    a = random.uniform(range.low, range.high);
    b = random.uniform(range.low, range.high);
    if (a > b) std::swap(a, b);
  } while (range.exclude && a >= range.excluded_low && b <= range.excluded_high);
  for (float& value : values) {
    value = random.uniform(a, b);
    if (range.decades > 0) {
      value *= std::pow(10.0f, random.uniform(-range.decades, range.decades));
    }
  }
}

}  // namespace posattn
