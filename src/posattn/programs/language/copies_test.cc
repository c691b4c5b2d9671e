// A copy costs nothing: others read the word that it copies. What they read is still what the copy
// holds, whatever has become of that word.
#include <gtest/gtest.h>

#include "posattn/programs/language/text_program_test.h"

namespace posattn {
namespace {

// Runs a program with several inputs, given by column; outputs are by column, too.
std::vector<Values> run_columns(const std::string& text, const std::vector<Values>& columns) {
  const size_t n = columns[0].size();
  Values input;
  for (size_t i = 0; i < n; ++i) {
    for (const Values& column : columns) input.push_back(column[i]);
  }
  const StaticProgram program = compile_text(text, "t.par", static_cast<int>(n));
  const Values found = run_static<double>(program, input, 1);
  std::vector<Values> outputs(program.outputs.size());
  for (size_t k = 0; k < found.size(); ++k) outputs[k % outputs.size()].push_back(found[k]);
  return outputs;
}

const std::string two_inputs =
    "word x : int[0..20] = input\n"
    "word d : int[0..9] = input\n";

TEST(Copies, AMessageGoesWhereACopySays) {
  const auto found = run_columns(two_inputs +
                                     "word e : int[0..9] = d\n"
                                     "d = min(9, d + 1)\n"
                                     "x = min(20, x + 1)\n"
                                     "send y = x to e\n"
                                     "output y\n"
                                     "output e\n",
                                 {{5, 6, 7, 8}, {0, 1, 2, 3}});
  EXPECT_EQ(found[0], (Values{6, 7, 8, 9}));
  EXPECT_EQ(found[1], (Values{0, 1, 2, 3}));
}

TEST(Copies, AMessageIsWhatACopyHolds) {
  const auto found = run_columns(two_inputs +
                                     "word old : int[0..20] = x\n"
                                     "x = min(20, x + 10)\n"
                                     "d = min(9, d + 1)\n"
                                     "send y = old to d\n"
                                     "output y\n",
                                 {{1, 2, 3, 4}, {0, 1, 2, 3}});
  EXPECT_EQ(found[0], (Values{0, 1, 2, 3}));
}

TEST(Copies, APermutationOfCopies) {
  const auto found = run_columns(two_inputs +
                                     "word old : int[0..20] = x\n"
                                     "x = x / 2\n"
                                     "permute y = old to (d + 1) % n\n"
                                     "output y\n"
                                     "output x\n",
                                 {{2, 4, 6, 8}, {0, 1, 2, 3}});
  EXPECT_EQ(found[0], (Values{8, 2, 4, 6}));
  EXPECT_EQ(found[1], (Values{1, 2, 3, 4}));
}

// The copied word receives something new in the same round.
TEST(Copies, OfAWordThatIsReceivedAgain) {
  EXPECT_EQ(run(input + "receive y = x from i - 1\n"
                        "x = x + y\n"
                        "receive z = x from i\n"
                        "word e : real = y\n"
                        "receive y = x from i + 1\n"
                        "receive q = e from i - 1\n"
                        "output q\n",
                {1, 2, 3}),
            (Values{0, 0, 1}));
}

TEST(Copies, AnArrayThatChangesItsPlaces) {
  const auto found = run_columns(input +
                                     "word c[2] : real\n"
                                     "c[0] = x\n"
                                     "c[1] = 2 * x\n"
                                     "receive b = c from i\n"
                                     "x = x + b[0]\n"
                                     "receive z = x from i\n"
                                     "word a[2] : real\n"
                                     "a[0] = b[1]\n"
                                     "a[1] = b[0]\n"
                                     "receive b = a from i - 1\n"
                                     "output b\n",
                                 {{1, 2, 3}});
  EXPECT_EQ(found[0], (Values{0, 2, 4}));
  EXPECT_EQ(found[1], (Values{0, 1, 2}));
}

TEST(Copies, AnArrayIsSentWhereItsOwnElementSays) {
  const auto found = run_columns(whole_input +
                                     "word c[2] : int[0..9]\n"
                                     "c[0] = (i + 1) % n\n"
                                     "c[1] = x\n"
                                     "receive b = c from i\n"
                                     "x = 9 - x\n"
                                     "receive z = x from i\n"
                                     "send b = c to b[0]\n"
                                     "output b\n",
                                 {{4, 5, 6}});
  EXPECT_EQ(found[0], (Values{0, 1, 2}));
  EXPECT_EQ(found[1], (Values{6, 4, 5}));
}

}  // namespace
}  // namespace posattn
