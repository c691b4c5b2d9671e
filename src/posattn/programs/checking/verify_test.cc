#include "posattn/programs/checking/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "posattn/base/error.h"
#include "posattn/programs/form/sample_programs_test.h"
#include "posattn/programs/language/language.h"
#include "posattn/programs/lowering/compile.h"

namespace posattn {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

Verification verify_model(const Model& model, const StaticProgram& program,
                          VerifyRequest how = {}) {
  how.model = &model;
  how.program = &program;
  how.samples = std::min<int64_t>(how.samples, 200);
  return verify(how);
}

// fp32: MSE / c^2 of at most 1e-13 where values only move, 1e-10 where they are added up.
TEST(Verify, TheLibraryIsAsExactAsItShouldBe) {
  for (const int n : {8, 32, 128}) {
    for (const char* name : {"cumulative-min", "cumulative-max", "sort", "sort-odd-even",
                             "cumulative-median", "cumulative-sum", "cumulative-max-subarray"}) {
      if (n == 128 && std::string_view(name) == "cumulative-median") continue;  // seconds
      SCOPED_TRACE(std::string(name) + " n = " + std::to_string(n));
      const StaticProgram program = library_program(name, n);
      const Model model = compile(program);
      const bool sums =
          std::string_view(name).ends_with("sum") || std::string_view(name).ends_with("subarray");
      const Verification in_float = verify_model(model, program, {.samples = 50, .threads = 2});
      EXPECT_TRUE(in_float.holds());
      for (const ScaleVerification& scale : in_float.scales) {
        EXPECT_LE(scale.mse, (sums ? 1e-10 : 1e-13) * scale.c * scale.c);
      }
      const Verification in_double =
          verify_model(model, program, {.samples = 50, .threads = 2, .in_double = true});
      EXPECT_TRUE(in_double.holds());
      for (const ScaleVerification& scale : in_double.scales) {
        EXPECT_LE(scale.mse, 1e-26 * scale.c * scale.c);
        EXPECT_LT(scale.largest_bound, 1e-8 * scale.c);
      }
    }
  }
}

TEST(Verify, WholeNumbersMustBeEqual) {
  RandomStream random(2, Purpose::test_data, 0, 0);
  const StaticProgram program = testing::integer_program(7, random);
  const Verification verification = verify_model(compile(program), program);
  EXPECT_TRUE(verification.holds());
  for (const ScaleVerification& scale : verification.scales) {
    EXPECT_EQ(scale.largest_error, 0);
    EXPECT_EQ(scale.largest_bound, 0);
    EXPECT_EQ(scale.mismatches, 0);
  }
}

TEST(Verify, AWrongWeightHasASimpleCounterExample) {
  const StaticProgram program = library_program("cumulative-sum", 8);
  Model model = compile(program);
  model.parameters["transformer_layers.1.attn.routes"][5] = 2;  // reads 2 instead of 3
  const Verification verification = verify_model(model, program);
  ASSERT_FALSE(verification.holds());
  const CounterExample& example = *verification.counter_example;
  EXPECT_EQ(example.against, "the program");
  // One number is enough to show it.
  EXPECT_EQ(std::ranges::count_if(example.input, [](double x) { return x != 0; }), 1);
  EXPECT_EQ(std::ranges::count(example.input, 1.0), 1);
  EXPECT_NE(example.found[5], example.expected[5]);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(example.found[i], example.expected[i]);
  for (const ScaleVerification& scale : verification.scales) EXPECT_GT(scale.mismatches, 150);
}

// Differences far below what training could reach, yet above rounding.
TEST(Verify, SmallDifferencesAreFound) {
  const StaticProgram program = library_program("sort", 8);
  Model model = compile(program);
  model.parameters["decoding.weight"][0] = 1.0001f;
  EXPECT_FALSE(verify_model(model, program).holds());
  EXPECT_FALSE(verify_model(model, program, {.in_double = true}).holds());
}

// How many are before each, ties by position: choices on data, summed up in a real word.
constexpr const char* rank_program = R"(
word x : int[0..99] = input
word r : real
for d in 1 .. n - 1:
  receive y = x from (i + d) % n
  r = r + (1 if y < x or y == x and i > (i + d) % n else 0)
output r
)";

// What shuts a choice is 2^60: it must not enter the bound.
TEST(Verify, ChoicesDoNotHideAWrongScale) {
  const StaticProgram program = compile_text(rank_program, "rank.par", 8);
  Model model = compile(program);
  const Verification right = verify_model(model, program);
  EXPECT_TRUE(right.holds());
  for (const ScaleVerification& scale : right.scales) EXPECT_EQ(scale.largest_bound, 0);
  for (float& weight : model.parameters["decoding.weight"]) weight *= 1000;
  const Verification wrong = verify_model(model, program);
  EXPECT_TRUE(wrong.counter_example);
  EXPECT_GT(wrong.scales[0].mismatches, 150);
}

TEST(Verify, ChoicesBetweenRealsAreBoundedByRounding) {
  const StaticProgram program = compile_text(R"(
word x : real = input
word k : int[0..9] = i % 3
for d in 1 .. 3:
  receive y = x from (i + d) % n
  receive l = k from (i + d) % n
  x = choose(k > l, 0.3 * x, y) + choose(k == l, y, x)
output x
)",
                                             "pick.par", 6);
  const Verification verification = verify_model(compile(program), program);
  EXPECT_TRUE(verification.holds());
  for (const ScaleVerification& scale : verification.scales) {
    EXPECT_GT(scale.largest_bound, 0);
    EXPECT_LT(scale.largest_bound, 1e-4 * scale.c);
  }
}

// Numbers a billion times larger than what is left of them.
TEST(Verify, ABoundThatIsNotSmallDecidesNothing) {
  ProgramBuilder builder("cancels", 3);
  const Variable x = builder.input("x"), large = builder.word("large", {});
  const Variable y = builder.receive("y", x, [](int i) { return (i + 1) % 3; });
  builder.set(large, add(builder[x], scale(0x1p30, builder[y])));
  const Variable same = builder.receive("same", large, [](int i) { return i; });
  builder.set(x, subtract(builder[same], scale(0x1p30, builder[y])));
  const StaticProgram program = builder.finish(x);
  const Verification verification = verify_model(compile(program), program);
  EXPECT_FALSE(verification.counter_example);
  EXPECT_FALSE(verification.is_decided());
  EXPECT_FALSE(verification.holds());
  EXPECT_TRUE(verify_model(compile(program), program, {.in_double = true}).holds());
}

// The interpreter rounds what cancels, too: by parts of what it was, not of what is left.
TEST(Verify, TheInterpreterRoundsWhatCancels) {
  const StaticProgram program =
      compile_text("word x : real = input\nx = x + 0.1 - x\noutput x\n", "cancels.par", 8);
  const Model model = compile(program);
  for (const bool in_double : {false, true}) {
    EXPECT_TRUE(
        verify_model(model, program, {.scales = {1, 1000, 1e6}, .in_double = in_double}).holds());
  }
  // What is further off is still found.
  Model wrong = model;
  for (float& weight : wrong.parameters["decoding.weight"]) weight *= 1.000001f;
  EXPECT_TRUE(verify_model(wrong, program, {.in_double = true}).counter_example);
}

// min(b, min(c, x)) is b - ((b - c) + ...) where c is known to be smaller: the compiler adds that
// up.
TEST(Verify, TheCompilerRoundsWhatCancels) {
  const StaticProgram program = compile_text(
      "word x : real = input\nx = min(1.65778 * 1.755514964, min(-0.14333 * 1.755514964, "
      "x))\noutput x\n",
      "folded.par", 2);
  EXPECT_TRUE(
      verify_model(compile(program), program, {.scales = {0.01}, .in_double = true}).holds());
}

// Dense weights are a softmax's: the smaller, the more it rounds them.
TEST(Verify, DenseWeightsAreThoseOfASoftmax) {
  const char* texts[] = {
      "word x : real = input\n"
      "receive z = sum of (1.0 / (1 + i * i)) * x over j where j == i\noutput z\n",
      "table w = [[1, 0, 0, 0], [0.000001, 0, 0, 0], [0.0000003, 0, 0, 0], [0.001, 0, 0, 0]]\n"
      "word x : real = input\nreceive y = sum of w[i, j] * x over j\noutput y\n",
      "word x : real = input\n"
      "receive y = sum of power(0.1, 1 + abs(i - j)) * x over j\noutput y\n",
      "word x : real = input\nreceive y = sum of (i - 2.7 * j) * x over j\noutput y\n"};
  for (const char* text : texts) {
    SCOPED_TRACE(text);
    const StaticProgram program = compile_text(text, "dense.par", 4);
    Model model = compile(program, {.dense = true});
    const Verification right = verify_model(model, program);
    EXPECT_TRUE(right.holds());
    for (const ScaleVerification& scale : right.scales) EXPECT_LT(scale.bound_share, 1e-4);
    for (float& score : model.parameters["transformer_layers.0.attn.qk_proj.weight"]) {
      if (score < 0) score *= 1.001f;
    }
    EXPECT_TRUE(verify_model(model, program).counter_example);
  }
}

TEST(Verify, RefusesChoicesThatCannotBeShut) {
  ProgramBuilder builder("large", 4);
  const Variable x = builder.input("x");
  const Variable bit = builder.word("bit", WordType::bit(), {0, 1, 0, 1});
  builder.set(x, select(builder[bit], scale(1e18, builder[x]), builder[x]), 3);
  const StaticProgram program = builder.finish(x);
  const Model model = compile(program);
  EXPECT_TRUE(verify_model(model, program, {.scales = {0.1}}).holds());
  try {
    verify_model(model, program, {.threads = 2});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::data);
    EXPECT_THAT(error.what(), HasSubstr("a choice between"));
    EXPECT_THAT(error.what(), HasSubstr("in round 0 (line 3) of program 'large'"));
    EXPECT_THAT(error.what(), HasSubstr("2^60"));
  }
}

TEST(Verify, OutputsThatAreNoNumbersAreWrong) {
  const StaticProgram program = library_program("sort", 4);
  Model model = compile(program);
  model.parameters["decoding.weight"][0] = NAN;
  const Verification verification = verify_model(model, program);
  EXPECT_FALSE(verification.holds());
  EXPECT_EQ(verification.scales[0].mismatches, 400);
}

TEST(Verify, TheProgramIsHeldAgainstItsTask) {
  StaticProgram program = library_program("cumulative-max", 6);
  program.task = "cumulative-min";
  const Verification verification = verify_model(compile(program), program);
  ASSERT_FALSE(verification.holds());
  EXPECT_EQ(verification.counter_example->against, "task cumulative-min");
}

// A model of another text, held against the text `says`.
Verification verify_against(const char* weights_of, const std::string& says, int n,
                            bool any_weights = true) {
  const StaticProgram program = compile_text(says, "says.par", n);
  return verify_model(compile(compile_text(weights_of, "weights.par", n)), program,
                      {.any_weights = any_weights});
}

std::string replaced(std::string text, std::string_view before, std::string_view after) {
  const size_t at = text.find(before);
  EXPECT_NE(at, std::string::npos) << before;
  return text.replace(at, before.size(), after);
}

// Random graphs practically never have a long path, and nothing else needs the last rounds.
TEST(Verify, GraphNetworksThatStopEarlyAreWrong) {
  for (const char* name : {"breadth-first", "components"}) {
    SCOPED_TRACE(name);
    const std::string text = replaced(find_program(name).text, "task ", "# task ");
    const std::string early = replaced(text, "1 .. n - 1", "1 .. n - 2");
    const Verification verification = verify_against(early.c_str(), text, 12);
    ASSERT_TRUE(verification.counter_example);
    EXPECT_GT(verification.scales[0].mismatches, 10);
  }
}

TEST(Verify, WholeNumbersAreTriedWhereTheyMatter) {
  const char* finds = "word x : int[0..1000000] = input\noutput (1 if x == 777777 else 0)\n";
  const char* never = "word x : int[0..1000000] = input\noutput 0 * x\n";
  EXPECT_TRUE(verify_against(never, finds, 4).counter_example);
  const std::string rank = replaced(rank_program, "99", "1000000");
  const std::string ties = replaced(rank, "y < x or", "y <= x or");
  EXPECT_TRUE(verify_against(ties.c_str(), rank, 8).counter_example);
}

// One comparator of a sorting network is missing: about one random input in 30,000 shows it.
TEST(Verify, AMissingComparatorIsFound) {
  const StaticProgram program = library_program("sort-odd-even", 64);
  StaticProgram without = program;
  std::vector<int32_t>& sources = without.rounds[16].receives[0].route.sources;
  ASSERT_EQ(sources[19], 50);
  for (const int i : {19, 50}) sources[i] = i;
  const Verification verification = verify_model(compile(without), program, {.any_weights = true});
  EXPECT_TRUE(verification.counter_example);
}

// 2^60 shuts a choice; a smaller number does so for small inputs alone.
TEST(Verify, LargeNumbersAreTriedToo) {
  const StaticProgram program = library_program("scatter", 4);
  Model model = compile(program);
  int64_t changed = 0;
  for (const TensorInfo& info : model.parameters.layout().tensors()) {
    for (float& weight : model.parameters[info.name]) {
      if (std::abs(weight) != 0x1p60F) continue;
      weight = std::copysign(4096.0F, weight);
      ++changed;
    }
  }
  ASSERT_GT(changed, 0);
  EXPECT_TRUE(verify_model(model, program, {.any_weights = true}).counter_example);
}

// One output of eight is garbage, within what rounding allows.
TEST(Verify, EachOutputIsDecidedByItself) {
  const StaticProgram program = compile_text(R"(
word x : real = input
x = x + 1000000000000
receive z = x from i
x = z - 1000000000000 if i == 3 else z
output x
)",
                                             "garbage.par", 8);
  const Verification verification = verify_model(compile(program), program);
  EXPECT_FALSE(verification.counter_example);
  EXPECT_FALSE(verification.is_decided());
  EXPECT_FALSE(verification.holds());
}

// The interpreter's own numbers may be infinite: their share of the bound is then no number.
TEST(Verify, WhatIsNoNumberDecidesNothing) {
  ScaleVerification scale;
  scale.bound_share = NAN;
  EXPECT_FALSE(scale.is_decided());
  scale.bound_share = 0.01;
  EXPECT_TRUE(scale.is_decided());
}

TEST(Verify, AFileDoesNotChooseTheRange) {
  const StaticProgram program = compile_text("word x : real = input\noutput x\n", "x.par", 3);
  Model model = compile(program);
  model.origin.range = 1e-10;
  try {
    verify_model(model, program);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::data);
    EXPECT_THAT(error.what(), HasSubstr("training range 1e-10"));
  }
}

// Inputs do not show every mistake, so other weights than the compiler's do not hold by default.
TEST(Verify, OtherWeightsHoldOnlyWhereTheyAreAccepted) {
  const StaticProgram program = library_program("sort", 4);
  Model model = compile(program);
  model.parameters["transformer_layers.0.mlp.mlp.0.bias"][0] = -1e-30F;
  const Verification verification = verify_model(model, program);
  EXPECT_FALSE(verification.counter_example);
  EXPECT_THAT(verification.other_weights, HasSubstr("1 number of transformer_layers.0.mlp"));
  EXPECT_FALSE(verification.holds());
  EXPECT_TRUE(verify_model(model, program, {.any_weights = true}).holds());
}

// A sum of bits, a comparison and a choice of a real number are exact.
TEST(Verify, ExactProgramsAreDecided) {
  const StaticProgram program = compile_text(R"(
word b : bit = input
word v : real = input
receive s = sum of b over j
output (v if s >= 2 else 0)
)",
                                             "exact.par", 4);
  for (const bool in_double : {false, true}) {
    EXPECT_TRUE(verify_model(compile(program), program, {.in_double = in_double}).holds());
  }
}

TEST(Verify, ThreadsChangeNothing) {
  const StaticProgram program = library_program("cumulative-max-subarray", 9);
  const Model model = compile(program);
  const Verification one = verify_model(model, program),
                     two = verify_model(model, program, {.threads = 2});
  for (size_t k = 0; k < one.scales.size(); ++k) {
    EXPECT_EQ(one.scales[k].mse, two.scales[k].mse);
    EXPECT_EQ(one.scales[k].largest_error, two.scales[k].largest_error);
    EXPECT_EQ(one.scales[k].largest_bound, two.scales[k].largest_bound);
    EXPECT_EQ(one.scales[k].bound_share, two.scales[k].bound_share);
  }
}

TEST(Verify, RefusesWhatDoesNotFit) {
  const auto message = [](const Model& model, int n, bool in_double, ExitCode code) -> std::string {
    try {
      verify_model(model, library_program("sort", n), {.in_double = in_double});
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code);
      return error.what();
    }
    return "";
  };
  const Model dense = compile(library_program("sort", 4), {.dense = true});
  EXPECT_EQ(message(dense, 4, false, ExitCode::data), "");
  EXPECT_THAT(message(dense, 5, false, ExitCode::data), HasSubstr("a model of 4 nodes"));
  EXPECT_THAT(message(dense, 4, true, ExitCode::configuration), HasSubstr("without --dense"));
}

}  // namespace
}  // namespace posattn
