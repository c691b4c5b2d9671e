// For the tests: programs as texts, run or refused.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "posattn/base/error.h"
#include "posattn/programs/language/language.h"
#include "posattn/programs/lowering/network_plan.h"

namespace posattn {

using Values = std::vector<double>;

inline const std::string input = "word x : real = input\n";
inline const std::string whole_input = "word x : int[0..9] = input\n";

inline Values run(const std::string& text, const Values& x) {
  const StaticProgram program = compile_text(text, "t.par", static_cast<int>(x.size()));
  return run_static<double>(program, x, 1);
}

// What a program is refused with; "" where it is not.
inline std::string message(const std::string& text, int n = 4, TextOptions options = {}) {
  options.limits.work = 1 << 18;
  try {
    compile_text(text, "t.par", n, options);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::configuration);
    return error.what();
  }
  return "";
}

}  // namespace posattn
