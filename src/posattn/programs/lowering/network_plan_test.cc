#include "posattn/programs/lowering/network_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "posattn/base/error.h"
#include "posattn/evaluation/predict.h"
#include "posattn/model/routed/routed_network.h"
#include "posattn/programs/form/sample_programs_test.h"
#include "posattn/programs/language/language.h"
#include "posattn/programs/lowering/compile.h"
#include "posattn/programs/lowering/run_plan_test.h"

namespace posattn {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

StaticProgram add_constant(int n) {
  ProgramBuilder program("plus-one", n);
  const Variable x = program.input("x");
  program.set(x, add(program[x], constant_value(1)));
  return program.finish(x);
}

TEST(NetworkPlan, OnlyProgramsWithConstantsSeePositions) {
  for (const LibraryProgram& entry : library_programs()) {
    const StaticProgram program = library_program(entry.name, 8);
    if (program.sends()) continue;  // its messages are routed first
    const NetworkPlan plan = plan_network(program);
    const std::set<std::string> with_constants = {
        "automaton",           "bellman-ford",      "bfs-tree",
        "breadth-first",       "components",        "connectivity",
        "contextual-counting", "distances",         "in-context-conjunction",
        "in-context-majority", "in-context-parity", "match-three",
        "match-two",           "one-two-cycle",     "sparse-average"};
    EXPECT_EQ(plan.constants, with_constants.contains(entry.name)) << entry.name;
    EXPECT_EQ(compile(plan).spec.positions_in_input, plan.constants);
    if (plan.constants) continue;
    const std::vector<double> zeros(plan.program.processors);
    EXPECT_THAT(run_plan(plan, zeros), Each(0.0)) << entry.name;
  }
  ProgramBuilder program("by-position", 3);
  const Variable x = program.input("x");
  const Variable w = program.word("w", {}, {0, 1, 2});
  program.set(x, add(program[x], program[w]));
  EXPECT_TRUE(plan_network(program.finish(x)).constants);
}

// Biases are zero, so that the scratch node stays zero: where the encoder sees no positions, zeros
// go to zeros and no constant can arise.
TEST(NetworkPlan, ConstantsComeThroughTheEncoderAlone) {
  Model model = compile(add_constant(4));
  const std::vector<float> zeros(4);
  EXPECT_THAT(predict_rows(model, zeros, 1), Each(1.0f));
  for (const TensorInfo& tensor : model.parameters.layout().tensors()) {
    if (!tensor.name.ends_with(".bias")) continue;
    EXPECT_THAT(model.parameters[tensor.name], Each(0.0f)) << tensor.name;
  }
  const std::span<float> encoder = model.parameters["encoding.weight"];
  const int64_t inputs = model.spec.input_size();
  for (int64_t row = 0; row < model.spec.width; ++row) {
    for (int64_t column = 1; column < inputs; ++column) encoder[row * inputs + column] = 0;
  }
  EXPECT_THAT(predict_rows(model, zeros, 1), Each(0.0f));
}

// 2^24 + 1 is no float: the sum is seen before anything is compiled.
TEST(NetworkPlan, LargestSumOfWholeNumbers) {
  constexpr int64_t limit = 1 << 24;
  const auto plus = [](int64_t constant) {
    ProgramBuilder program("large", 2);
    const Variable x = program.input("x", WordType::integer(0, 1));
    const Variable sum = program.word("sum", WordType::integer(0, 2 * limit));
    program.set(sum, add(program[x], constant_value(static_cast<double>(constant))), 7);
    return program.finish(sum);
  };
  EXPECT_EQ(plan_network(plus(1000)).largest_integer_sum, 1001);
  const StaticProgram program = plus(limit);
  const NetworkPlan plan = plan_network(program);
  EXPECT_GT(plan.largest_integer_sum, limit);
  EXPECT_EQ(plan.largest_integer_place, "round 0 (line 7)");
  // fp32 would give `limit`: such weights are not made.
  EXPECT_THROW(compile(plan), Error);
  EXPECT_NO_THROW(compile(plus(limit - 2)));
  const std::vector<double> ones = {1, 1};
  EXPECT_THAT(run_static<double>(program, ones, 1), Each(static_cast<double>(limit + 1)));
}

TEST(NetworkPlan, NestedFunctionsTakeSilentLayers) {
  ProgramBuilder program("median-of-three", 5);
  const Variable x = program.input("x");
  const Variable l = program.receive("l", x, [](int i) { return i - 1; });
  const Variable r = program.receive("r", x, [](int i) { return i + 1; });
  const Value low = minimum(program[x], program[l]), high = maximum(program[x], program[l]);
  program.set(x, maximum(low, minimum(high, program[r])));
  const NetworkPlan plan = plan_network(program.finish(x));
  ASSERT_THAT(plan.layers, SizeIs(3));
  EXPECT_THAT(plan.layers[0].heads, SizeIs(2));
  EXPECT_FALSE(plan.layers[0].silent);
  EXPECT_TRUE(plan.layers[1].silent);
  EXPECT_TRUE(plan.layers[2].silent);
  for (const PlannedLayer& layer : plan.layers) EXPECT_EQ(layer.round, 0);
  EXPECT_THAT(run_plan(plan, std::vector<double>{5, 1, 4, 2, 3}), ElementsAre(1, 4, 2, 3, 2));
}

// A row of attention: weights that are not negative and sum to at most one.
TEST(NetworkPlan, MatricesBecomeTwoHeads) {
  const NetworkPlan plan = plan_network(library_program("matrix-vector", 9));
  ASSERT_THAT(plan.layers, SizeIs(1));
  ASSERT_THAT(plan.layers[0].heads, SizeIs(2));
  double largest = 0;
  for (const PlannedHead& head : plan.layers[0].heads) {
    for (const auto& row : head.route.weighted) {
      double sum = 0;
      for (const auto& [j, weight] : row) {
        EXPECT_GT(weight, 0);
        sum += weight;
      }
      EXPECT_LE(sum, 1 + 1e-12);
      largest = std::max(largest, sum);
    }
  }
  EXPECT_NEAR(largest, 1, 1e-12);
}

TEST(NetworkPlan, RefusesSizesThatAreTooSmall) {
  const auto message = [](const PlanSizes& sizes) -> std::string {
    try {
      plan_network(library_program("sort", 8), sizes);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::configuration);
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message({.width = 2, .heads = 2, .hidden = 4, .depth = 6}), "");
  EXPECT_THAT(message({.heads = 1}), HasSubstr("1 heads for program 'sort'"));
  EXPECT_THAT(message({.width = 1}), HasSubstr("1 width for program 'sort'"));
  EXPECT_THAT(message({.width = 5, .heads = 2}), HasSubstr("a width that the heads divide"));
  EXPECT_THAT(message({.hidden = 3}), HasSubstr("at least 4"));
  EXPECT_THAT(message({.depth = 5}), HasSubstr("at least 6"));
}

}  // namespace
}  // namespace posattn
