#include "posattn/programs/lowering/run_network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "posattn/base/error.h"
#include "posattn/programs/language/library.h"
#include "posattn/programs/lowering/compile.h"

namespace posattn {
namespace {

using ::testing::HasSubstr;

std::string overflow(const StaticProgram& program, const std::vector<double>& input) {
  try {
    run_network(compile(program), program, input, 1);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::data);
    return error.what();
  }
  return "";
}

TEST(RunNetwork, ComputesWhatTheProgramDoes) {
  const StaticProgram sort = library_program("sort", 3);
  EXPECT_EQ(run_network(compile(sort), sort, std::vector<double>{3, 1, 2, 1e38, 0, -1e38}, 2),
            (std::vector<double>{1, 2, 3, -1e38f, 0, 1e38f}));
}

TEST(RunNetwork, NumbersBeyondItsArithmeticAreRefused) {
  const StaticProgram sort = library_program("sort", 3);
  EXPECT_THAT(overflow(sort, {1, 1e39, 2}), HasSubstr("1e+39 of 'x' on processor 1"));
  EXPECT_THAT(overflow(sort, {3e38, -3e38, 1}),
              HasSubstr("an overflow in the network of program 'sort'"));
  const StaticProgram sums = library_program("cumulative-sum", 3);
  EXPECT_THAT(overflow(sums, {3e38, 3e38, 1}), HasSubstr("up to 3.4e+38"));
}

}  // namespace
}  // namespace posattn
