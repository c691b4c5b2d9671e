// Static programs in words, for listings and diagrams.
#pragma once

#include <string>
#include <vector>

#include "posattn/programs/form/static_program.h"

namespace posattn {

// What the round does to each word, as "x = x + relu(p - x)"; long ones are cut at `longest`
// characters.
std::vector<std::string> describe_updates(const StaticProgram& program, const Round& round,
                                          size_t longest = 60);

}  // namespace posattn
