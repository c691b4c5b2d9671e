// Which words hold numbers that no input can change: places known before the program runs.
#pragma once

#include <vector>

#include "posattn/programs/form/static_program.h"

namespace posattn {

// When each round begins, the numbers by processor of each word, empty where they depend on the
// input: [rounds][words][processors].
std::vector<std::vector<std::vector<double>>> known_words(const StaticProgram& program);

}  // namespace posattn
