#include "posattn/programs/language/series.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace posattn::language {

using Bound = ForStatement::Bound;

Series::Series(const ForStatement& loop, std::vector<int64_t> first, int64_t end, Position position,
               const Source& source)
    : first_(std::move(first)), bound_(loop.bound), end_(end) {
  if (bound_ == Bound::range) {
    difference_ = 1;
    return;
  }
  // What lies beyond the end is not taken, and says nothing about what follows.
  const auto beyond = std::ranges::find_if(first_, [&](int64_t v) { return !is_inside(v); });
  if (beyond != first_.end()) {
    first_.erase(beyond + 1, first_.end());
    return;
  }
  const bool quotients = std::ranges::all_of(
      loop.terms, [](const Term& term) { return term.kind == Term::Kind::divide; });
  find_rule(quotients, position, source);
  const bool ascends = bound_ == Bound::below || bound_ == Bound::up_to;
  const bool moves =
      ascends ? difference_ > 0 || (factor_ > 1 && first_.back() > 0)
              : difference_ < 0 || (divisor_ > 1 && end_ + (bound_ == Bound::above ? 1 : 0) > 0);
  if (!moves) {
    throw source.error(
        position, fmt::format("the values {}, ... never end", fmt::join(first_, ", ")),
        ascends ? "growing values for 'below' and 'up to'"
                : "falling values for 'above' and 'down to'; quotients reach 0 at most");
  }
}

bool Series::is_inside(int64_t value) const {
  switch (bound_) {
    case Bound::below:
      return value < end_;
    case Bound::above:
      return value > end_;
    case Bound::down_to:
      return value >= end_;
    case Bound::up_to:
    case Bound::range:
      break;
  }
  return value <= end_;
}

void Series::find_rule(bool quotients, Position position, const Source& source) {
  const auto follows = [&](auto next) {
    for (size_t k = 0; k + 1 < first_.size(); ++k) {
      if (next(first_[k]) != first_[k + 1]) return false;
    }
    return true;
  };
  const int64_t a = first_[0], b = first_[1];
  const bool by_difference = follows([&](int64_t v) { return v + (b - a); });
  if (by_difference && !(quotients && first_.size() == 2)) {
    difference_ = b - a;
    return;
  }
  // In double: what is beyond 2^53 equals none of the values.
  const int64_t ratio = a > 0 ? b / a : 0;
  const auto times = [&](int64_t v) { return static_cast<double>(v) * static_cast<double>(ratio); };
  if (a > 0 && b > a && b % a == 0 &&
      follows([&](int64_t v) { return static_cast<int64_t>(std::min(times(v), 0x1p60)); })) {
    factor_ = ratio;
    return;
  }
  // The smallest divisor that takes a to b, rounding down.
  const int64_t divisor = b >= 0 && a > b ? a / (b + 1) + 1 : 0;
  if (divisor > 1 && follows([&](int64_t v) { return v / divisor; })) {
    divisor_ = divisor;
    return;
  }
  throw source.error(position, fmt::format("the values {}, ...", fmt::join(first_, ", ")),
                     "a constant difference or a constant ratio");
}

std::optional<int64_t> Series::next() {
  if (taken_ < first_.size()) {
    value_ = first_[taken_];
  } else if (factor_ > 1 && value_ > (int64_t{1} << 53) / factor_) {
    return std::nullopt;  // beyond every end
  } else {
    value_ = (value_ * factor_) / divisor_ + difference_;
  }
  ++taken_;
  if (!is_inside(value_)) return std::nullopt;
  return value_;
}

}  // namespace posattn::language
