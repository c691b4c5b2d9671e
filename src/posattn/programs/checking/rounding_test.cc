#include "posattn/programs/checking/rounding.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "posattn/model/network.h"
#include "posattn/model/routed/routed_network.h"
#include "posattn/programs/form/sample_programs_test.h"
#include "posattn/programs/language/language.h"
#include "posattn/programs/lowering/compile.h"

namespace posattn {
namespace {

using Values = std::vector<double>;

// Rounds of everything that reals may go through, with factors that fp32 does not hold.
StaticProgram random_program(int n, RandomStream& random) {
  ProgramBuilder program("random", n);
  std::vector<Variable> words = {program.input("x"), program.word("a", {}), program.word("b", {})};
  const auto any = [&](const auto& list) {
    return list[random.below(static_cast<uint32_t>(list.size()))];
  };
  for (int round = 0; round < 4; ++round) {
    std::vector<int> place(n);
    for (int& from : place) from = static_cast<int>(random.below(n + 1));
    const Variable y = program.receive("y", any(words), [&](int i) { return place[i]; });
    std::vector<Value> values = {program[y]};
    for (const Variable& word : words) values.push_back(program[word]);
    for (int k = 0; k < 5; ++k) {
      const Value a = any(values), b = any(values);
      const Value scaled = scale(random.uniform(-1.5, 1.5), a);
      const Value choices[] = {add(scaled, b), minimum(a, b), maximum(scaled, b), absolute(a),
                               relu(a),        scaled,        subtract(a, b)};
      values.push_back(choices[random.below(7)]);
    }
    for (const Variable& word : words) program.set(word, any(values));
    program.set(words[0], add(any(values), scale(0.1, program[words[0]])));
  }
  return program.finish(words[0]);
}

struct Largest {
  double error = 0, bound = 0;
};

// Runs the compiled network in T on random inputs of size `range`: every output within its bound.
template <class T>
Largest expect_within_bounds(const StaticProgram& program, double range, double roundoff,
                             uint32_t variant) {
  constexpr int64_t count = 20;
  const int n = program.processors;
  const auto inputs = n * static_cast<int64_t>(program.inputs.size());
  const auto results = n * static_cast<int64_t>(program.outputs.size());
  const WordType& type = program.words[program.inputs[0]].type;
  RandomStream random(5, Purpose::test_data, variant, static_cast<uint32_t>(n));
  std::vector<T> rows(count * inputs), outputs(count * results);
  for (T& x : rows) {
    x = type.is_real() ? static_cast<float>(random.uniform(-range, range))
                       : static_cast<T>(random.below(19)) - 9;
  }
  const NetworkPlan plan = plan_network(program);
  const Model model = compile(plan);
  RoutedNetwork<T>(model.spec, model.parameters).forward(rows.data(), count, outputs.data());
  Largest largest;
  for (int64_t s = 0; s < count; ++s) {
    const Values input(rows.begin() + s * inputs, rows.begin() + (s + 1) * inputs);
    const Values exact = run_static<double>(program, input, 1);
    const BoundedOutputs bounded = bounded_run(plan, input.data(), roundoff);
    for (int64_t i = 0; i < results; ++i) {
      const double error = std::abs(static_cast<double>(outputs[s * results + i]) - exact[i]);
      EXPECT_LE(error, bounded.bounds[i] + bounded.slack[i])
          << program.name << " n = " << n << ", output " << i;
      EXPECT_NEAR(bounded.values[i], exact[i], 1e-12 * (std::abs(exact[i]) + range));
      largest.error = std::max(largest.error, error);
      largest.bound = std::max(largest.bound, bounded.bounds[i]);
    }
  }
  return largest;
}

TEST(Rounding, RandomProgramsStayWithinTheBound) {
  double tightest = 0;
  for (uint32_t k = 0; k < 60; ++k) {
    RandomStream random(11, Purpose::test_data, 2, k);
    const StaticProgram program = random_program(1 + static_cast<int>(random.below(9)), random);
    const Largest largest = expect_within_bounds<float>(program, 3, float_roundoff, k);
    if (largest.bound > 0) tightest = std::max(tightest, largest.error / largest.bound);
  }
  EXPECT_GT(tightest, 0.02);  // a bound that is never near would say nothing
}

TEST(Rounding, SamplesAndLibraryStayWithinTheBound) {
  for (const int n : {1, 2, 5, 8, 13}) {
    for (const auto& sample : testing::sample_programs(n, 9)) {
      expect_within_bounds<float>(sample.program, 4, float_roundoff, 1);
    }
    for (const LibraryProgram& entry : library_programs()) {
      const StaticProgram program = library_program(entry.name, n);
      const auto is_real = [&](int word) { return program.words[word].type.is_real(); };
      if (program.sends() || !std::ranges::all_of(program.inputs, is_real)) continue;
      expect_within_bounds<float>(program, 2000, float_roundoff, 2);
    }
  }
}

// A network in double still has the weights of its file.
TEST(Rounding, DoubleKeepsTheErrorOfStoredWeights) {
  ProgramBuilder program("tenth", 3);
  const Variable x = program.input("x");
  program.set(x, scale(0.1, program[x]));
  const Largest largest = expect_within_bounds<double>(program.finish(x), 2, double_roundoff, 3);
  EXPECT_GT(largest.error, 1e-10);
  EXPECT_LT(largest.bound, 1e-7);
  // Without such weights there is none.
  const Largest sums = expect_within_bounds<double>(testing::sum_program(8), 2, double_roundoff, 4);
  EXPECT_LT(sums.bound, 1e-13);
}

// What is rounded in double is of the size that numbers have before they cancel.
TEST(Rounding, TheInterpreterIsBoundedByWhatCancels) {
  ProgramBuilder builder("cancels", 1);
  const Variable x = builder.input("x");
  builder.set(x, subtract(add(builder[x], constant_value(0.1)), builder[x]));
  const StaticProgram program = builder.finish(x);
  const NetworkPlan plan = plan_network(program);
  double largest = 0;
  for (const double size : {1.0, 1635.0, 1e6 / 3, 1e15}) {
    const double error = std::abs(run_static<double>(program, Values{size}, 1)[0] - 0.1);
    const Values bounds = bounded_run(plan, &size, double_roundoff).slack;
    EXPECT_LE(error, bounds[0]);
    EXPECT_LE(bounds[0], 20 * double_roundoff * (size + 0.1));
    largest = std::max(largest, error / bounds[0]);
  }
  EXPECT_GT(largest, 0.02);
}

TEST(Rounding, SortIsBoundedTightly) {
  const NetworkPlan plan = plan_network(library_program("sort", 8));
  RandomStream random(1, Purpose::test_data, 0, 0);
  for (int k = 0; k < 50; ++k) {
    Values input(8);
    for (double& x : input) x = random.uniform(-2, 2);
    const BoundedOutputs outputs = bounded_run(plan, input.data(), float_roundoff);
    for (const double bound : outputs.bounds) {
      EXPECT_LT(bound, 1e-4);
      EXPECT_GE(bound, 0);
    }
  }
}

TEST(Rounding, BoundsGrowWithTheInputs) {
  const NetworkPlan plan = plan_network(library_program("sort", 8));
  Values input = {1.1, -2.3, 0.51, 7.9, 3.3, -4.7, 2.1, 6.7};
  const Values once = bounded_run(plan, input.data(), float_roundoff).bounds;
  for (double& x : input) x *= 1024;
  const Values scaled = bounded_run(plan, input.data(), float_roundoff).bounds;
  for (size_t i = 0; i < once.size(); ++i) EXPECT_DOUBLE_EQ(scaled[i], 1024 * once[i]);
}

}  // namespace
}  // namespace posattn
