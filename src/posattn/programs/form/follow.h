// Where one output's value came from: the word that carried it, round by round.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "posattn/programs/form/static_program.h"

namespace posattn {

struct CarriedBy {
  int processor = 0, word = 0;
  bool operator==(const CarriedBy&) const = default;
};

// For one input: who carried output `output` of a processor before the first round, after it, and
// so on to the end. Through a minimum that is the smaller operand, through a choice the chosen one,
// through a sum the larger part. Nobody before the round in which the value was made of nothing
// that was received or held.
std::vector<std::optional<CarriedBy>> follow(const StaticProgram& program,
                                             std::span<const double> input, int processor,
                                             int output = 0);

}  // namespace posattn
