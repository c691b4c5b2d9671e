// What the columns of pairs of nodes may hold: finite numbers, and classes that there are.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "posattn/tasks/task.h"

namespace posattn {

struct PairFault {
  std::string problem, expected;
};

// The first thing that is wrong with pairs of samples, whose arrays have the right sizes.
template <class T>
std::optional<PairFault> fault_of_pairs(const TaskShape& shape, std::span<const T> numbers,
                                        std::span<const int32_t> classes);

}  // namespace posattn
