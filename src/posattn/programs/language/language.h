// The language of parallel programs (docs/language.md): a text and a length n give a static
// program.
//
//   program cumulative-sum
//   word x : real = input
//   for d in 1, 2, 4, ... below n:
//     receive y = x from i - d         # a missing neighbour reads zero
//     x = x + y
//   output x
#pragma once

#include <string>
#include <string_view>

#include "posattn/programs/form/static_program.h"
#include "posattn/programs/language/source.h"

namespace posattn {

// `name` is the file's, for errors: "scan.par:3:7: ...". Throws Error(configuration).
StaticProgram compile_text(std::string_view text, const std::string& name, int length,
                           const language::Limits& limits = {});

}  // namespace posattn
