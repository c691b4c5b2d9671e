// Takes out of a static program what its output does not need.
#pragma once

#include "posattn/programs/form/static_program.h"

namespace posattn {

// Instructions that compute the same become one; words, receives, instructions and rounds that do
// not reach the output go; the order of what stays is kept.
void simplify(StaticProgram& program);

// live[r]: the words that matter before round r; live[rounds]: after the last, the output alone.
std::vector<std::vector<bool>> live_words(const StaticProgram& program);

}  // namespace posattn
