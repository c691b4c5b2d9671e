// The values of a loop: the first ones say the rest. Two have a constant difference (0, 2, ...),
// two quotients a constant ratio (k / 2, k / 4, ...), three whichever they fit (1, 2, 4, ...).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "posattn/programs/language/syntax.h"

namespace posattn::language {

class Series {
 public:
  // Throws where the first values follow no rule, or never reach the end.
  Series(const ForStatement& loop, std::vector<int64_t> first, int64_t end, Position position,
         const Source& source);

  // The next value; none at the end.
  std::optional<int64_t> next();

 private:
  bool is_inside(int64_t value) const;
  void find_rule(bool quotients, Position position, const Source& source);

  std::vector<int64_t> first_;
  ForStatement::Bound bound_;
  int64_t end_;
  size_t taken_ = 0;
  int64_t value_ = 0;
  int64_t difference_ = 0, factor_ = 1, divisor_ = 1;
};

}  // namespace posattn::language
