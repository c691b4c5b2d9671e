// Curved functions from the text to the network.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "posattn/base/error.h"
#include "posattn/model/routed/routed_network.h"
#include "posattn/programs/checking/rounding.h"
#include "posattn/programs/checking/verify.h"
#include "posattn/programs/form/builder.h"
#include "posattn/programs/form/function_table.h"
#include "posattn/programs/language/language.h"
#include "posattn/programs/lowering/compile.h"

namespace posattn {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* softmax = R"(
word x : real = input
word m : real = x
for d in 1, 2, 4, ... below n:
  receive y = m from (i + d) % n
  m = max(m, y)
word e : real = exp(max(x - m, -12)) on [-12, 0] within 1e-5
receive s = sum of e over j
x = product(e, reciprocal(s) on [1, n + 1] within 1e-5) on [0, 1] within 1e-4
output x
)";

constexpr const char* deviation = R"(
word x : real = input
receive m = sum of 1.0 / n * x over j
word s : real = square(x - m) on [-4, 4] within 1e-4
receive v = sum of 1.0 / n * s over j
v = sqrt(v + 0.1) on [0.1, 17] within 1e-3
output v
)";

Verification verified(const StaticProgram& program, std::vector<double> scales,
                      bool in_double = false) {
  const Model model = compile(program);
  return verify({.model = &model,
                 .program = &program,
                 .scales = std::move(scales),
                 .samples = 40,
                 .in_double = in_double});
}

std::string refusal(const auto& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// In double the network is the table, up to how its weights are stored.
TEST(Approximation, TheNetworkComputesTheTable) {
  struct Example {
    const char* function;
    double low, high;
  };
  for (const Example& example :
       {Example{"square", -3, 2}, Example{"square", 1, 4}, Example{"exp", -6, 1},
        Example{"reciprocal", 0.5, 9}, Example{"reciprocal", -3, -1}, Example{"log", 0.25, 20},
        Example{"sqrt", 0, 5}}) {
    SCOPED_TRACE(example.function);
    ProgramBuilder builder("curve", 101);
    const Variable x = builder.input("x");
    builder.set(x, approximation(example.function, builder[x], example.low, example.high, 1e-3));
    const StaticProgram program = builder.finish(x);
    const NetworkPlan plan = plan_network(program);
    EXPECT_EQ(plan.layers.size(), 1u);
    const auto table = function_table(example.function, example.low, example.high, 1e-3);
    EXPECT_LE(plan.hidden, static_cast<int>(table->pieces()) + 2);
    std::vector<double> input(101), outputs(101);
    for (int k = 0; k <= 100; ++k) {
      input[k] = std::min(example.high, example.low + k * (example.high - example.low) / 100);
    }
    const Model model = compile(plan);
    RoutedNetwork<double>(model.spec, model.parameters).forward(input.data(), 1, outputs.data());
    const BoundedOutputs bounded = bounded_run(plan, input.data(), float_roundoff);
    for (int k = 0; k <= 100; ++k) {
      EXPECT_NEAR(outputs[k], (*table)(input[k]), 2e-6);
      EXPECT_LE(std::abs(outputs[k] - table->function->value(input[k])), bounded.bounds[k]);
      EXPECT_LT(bounded.bounds[k], 1.2e-3);
    }
  }
}

TEST(Approximation, ProductsOfTwoWords) {
  const StaticProgram program = compile_text(R"(
word x : real = input
receive y = x from (i + 1) % n
x = product(x, y) on [-2, 2] within 0.001
output x
)",
                                             "product.par", 5);
  const Verification verification = verified(program, {1});
  EXPECT_TRUE(verification.holds());
  EXPECT_LT(verification.scales[0].largest_bound, 0.00101);
  EXPECT_GT(verification.scales[0].largest_error, 0.0001);
}

TEST(Approximation, ProgramsAreVerifiedWithinTheirTables) {
  for (const int n : {1, 2, 5}) {
    const StaticProgram program = compile_text(softmax, "softmax.par", n);
    const Verification verification = verified(program, {1, 10, 1000});
    EXPECT_TRUE(verification.holds()) << n;
    for (const ScaleVerification& scale : verification.scales) {
      EXPECT_LT(scale.largest_error, 2e-3);
      EXPECT_GT(scale.largest_bound, scale.largest_error);
    }
    EXPECT_TRUE(verified(compile_text(deviation, "deviation.par", n), {1, 0.5}).holds());
    EXPECT_TRUE(verified(compile_text(deviation, "deviation.par", n), {1}, true).holds());
  }
}

TEST(Approximation, AWrongTableIsFound) {
  const StaticProgram program = compile_text(softmax, "softmax.par", 3);
  Model model = compile(program);
  for (float& weight : model.parameters["decoding.weight"]) weight *= 1.05f;
  const VerifyRequest request{.model = &model, .program = &program, .scales = {1}, .samples = 20};
  EXPECT_TRUE(verify(request).counter_example);
}

TEST(Approximation, OutsideItsRangeThereIsNoGuess) {
  const StaticProgram program = compile_text(deviation, "deviation.par", 4);
  const std::vector<double> far = {9, 0, 0, 0};
  const std::string message = refusal([&] { run_static<double>(program, far, 1); });
  EXPECT_THAT(message, AllOf(HasSubstr("square of 6.75 on processor 0 in round 0 (line"),
                             HasSubstr("a number from -4 to 4, the range of its table")));
  EXPECT_THAT(refusal([&] { verified(program, {10}); }), HasSubstr("square of"));
}

// What a choice leaves out may be outside.
TEST(Approximation, AChoiceGuardsARange) {
  const StaticProgram program = compile_text(R"(
word k : int[0..9] = input
word x : real = choose(k >= 1, reciprocal(k) on [1, 9] within 0.001, 5)
output x
)",
                                             "guarded.par", 4);
  const Verification verification = verified(program, {1});
  EXPECT_TRUE(verification.holds());
  const std::vector<double> input = {0, 1, 2, 4};
  EXPECT_EQ(run_static<double>(program, input, 1), (std::vector<double>{5, 1, 0.5, 0.25}));
}

// Outside its range the network's table goes on straight: a choice must still shut that out.
TEST(Approximation, AChoiceLeavesOutOnlyWhatItCanShut) {
  const StaticProgram program = compile_text(R"(
word x : real = input
word b : bit = input
word y : real = choose(b, 2 - square(x) on [-10, 10] within 0.01, 1)
output y
)",
                                             "left_out.par", 2);
  const auto outputs = [&](double x) {
    return run_static<double>(program, std::vector<double>{x, 0, 2, 1}, 1);
  };
  EXPECT_EQ(outputs(1e16), (std::vector<double>{1, -2}));
  for (const double x : {1e17, -1e18}) {
    EXPECT_THAT(refusal([&] { outputs(x); }), AllOf(HasSubstr("a choice between -"),
                                                    HasSubstr("on processor 0 in round 0 (line 4"),
                                                    HasSubstr("numbers below 2^60")));
  }
}

// What is not shut inside reaches the choice around it.
TEST(Approximation, AChoiceInsideAChoiceMustBeShutToo) {
  const StaticProgram program = compile_text(R"(
word x : real = input
word b : bit = input
word y : real = choose(b, choose(b, x, 3), 1)
output y
)",
                                             "inside.par", 1);
  EXPECT_THAT(refusal([&] {
                run_static<double>(program, std::vector<double>{1e19, 0}, 1);
              }),
              HasSubstr("a choice between 1e+19 and 3"));
}

TEST(Approximation, RefusedInTheText) {
  const auto message = [](const std::string& line) {
    return refusal(
        [&] { compile_text("word x : real = input\n" + line + "\noutput x\n", "line.par", 4); });
  };
  EXPECT_EQ(message("x = exp(x) on [-1, 1] within 0.01"), "");
  EXPECT_EQ(message("x = 2 * log(x + 3) on [1, 2 * n] within (1.0 / 64) + x"), "");
  EXPECT_THAT(message("x = exp(x)"), HasSubstr("exp(...) on [LOW, HIGH] within 0.001"));
  EXPECT_THAT(message("x = x * x"), HasSubstr("product(x, y) on [LOW, HIGH]"));
  EXPECT_THAT(message("x = 1 / x"), HasSubstr("reciprocal(y) on [LOW, HIGH]"));
  EXPECT_THAT(message("x = sine(x) on [0, 1] within 0.1"), HasSubstr("unknown function 'sine'"));
  EXPECT_THAT(message("x = exp(x) on [0, 1]"), HasSubstr("'within'"));
  EXPECT_THAT(message("x = exp(x) on 0, 1 within 1"), HasSubstr("'['"));
  EXPECT_THAT(message("x = log(x) on [0, 1] within 0.1"), HasSubstr("above 0"));
  EXPECT_THAT(message("x = exp(x) on [0, i] within 0.1"), HasSubstr("depends on the processor"));
  EXPECT_THAT(message("x = exp(x, x) on [0, 1] within 0.1"), HasSubstr("exp with 2 arguments"));
  EXPECT_THAT(message("let a = exp(2) on [0, 3] within 0.1"), HasSubstr("for numbers"));
  EXPECT_THAT(message("x = x + exp(2) on [0, 1] within 0.1"), HasSubstr("for numbers"));
}

}  // namespace
}  // namespace posattn
