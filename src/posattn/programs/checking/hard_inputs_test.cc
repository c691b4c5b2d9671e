#include "posattn/programs/checking/hard_inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "posattn/programs/language/language.h"

namespace posattn {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::Ge;
using ::testing::Le;

RandomStream stream(int index) { return {7, Purpose::test_data, 0, static_cast<uint32_t>(index)}; }

// The number of steps from node 0 to the node that is farthest away, of those it reaches.
int depth_of(const Edges& edges, int n) {
  std::vector<int> steps(n, n);
  steps[0] = 0;
  for (int round = 0; round < n; ++round) {
    for (const auto& [a, b] : edges) {
      steps[a] = std::min(steps[a], steps[b] + 1);
      steps[b] = std::min(steps[b], steps[a] + 1);
    }
  }
  int depth = 0;
  for (const int step : steps) depth = step < n ? std::max(depth, step) : depth;
  return depth;
}

TEST(GraphShapes, HaveNodesOfTheGraphAndSomeHaveTheLongestPath) {
  for (const int n : {1, 2, 3, 8, 17}) {
    std::vector<int> depths;
    for (int index = 0; index < 10 * graph_shape_count(); ++index) {
      RandomStream random = stream(index);
      const Edges edges = drawn_graph(index, n, random);
      for (const auto& [a, b] : edges) {
        EXPECT_NE(a, b);
        EXPECT_TRUE(a >= 0 && a < n && b >= 0 && b < n) << a << " " << b;
      }
      depths.push_back(depth_of(edges, n));
    }
    // From paths, which begin at node 0 more often than elsewhere, to graphs that fall apart.
    for (const int depth : {0, 1, n / 2, n - 1}) {
      if (depth < n) {
        EXPECT_THAT(depths, Contains(depth)) << n;
      }
    }
    EXPECT_GE(std::ranges::count(depths, n - 1), n > 1 ? 10 : 0);
  }
}

TEST(NumberPatterns, StayInTheRangeAndReachItsEnds) {
  const std::vector<double> constants = {3, 700};
  for (const bool whole : {false, true}) {
    const NumberRange range = {.low = -5, .high = 9, .whole = whole, .specials = constants};
    std::vector<double> all;
    for (int pattern = 0; pattern < 5 * number_pattern_count(); ++pattern) {
      for (const int count : {1, 2, 7}) {
        RandomStream random = stream(pattern);
        const std::vector<double> row = patterned(pattern, count, range, random);
        ASSERT_EQ(row.size(), count);
        EXPECT_THAT(row, Each(Ge(-5)));
        EXPECT_THAT(row, Each(Le(9)));
        if (whole) {
          for (const double x : row) EXPECT_EQ(x, std::round(x));
        }
        all.insert(all.end(), row.begin(), row.end());
      }
    }
    for (const double x : {-5, 9, 0, 3}) EXPECT_THAT(all, Contains(x));
  }
}

TEST(HardInputs, AreInputsOfTheProgram) {
  for (const LibraryProgram& written : library_programs()) {
    for (const int n : {2, 8}) {
      SCOPED_TRACE(written.name + " n = " + std::to_string(n));
      const StaticProgram program = library_program(written.name, n);
      const HardInputs hard(program);
      for (int index = 0; index < 100; ++index) {
        RandomStream random = stream(index);
        std::vector<float> input(program.processors * program.inputs.size());
        hard.draw(random, {-2, 2}, index, input);
        const auto fault = input_fault(program, std::vector<double>(input.begin(), input.end()));
        EXPECT_FALSE(fault) << fault->problem;
      }
    }
  }
}

TEST(HardInputs, HaveTiesBothEndsAndTheConstantsOfTheProgram) {
  const StaticProgram program = compile_text(
      "word x : int[0..1000000] = input\noutput (1 if 2 * x == 1555554 else 0)\n", "find.par", 4);
  const HardInputs hard(program);
  bool ties = false;
  std::vector<double> all;
  for (int index = 0; index < 2000; ++index) {
    RandomStream random = stream(index);
    std::vector<float> input(4);
    hard.draw(random, {-2, 2}, index, input);
    ties = ties || std::ranges::all_of(input, [&](float x) { return x == input[0]; });
    all.insert(all.end(), input.begin(), input.end());
  }
  EXPECT_TRUE(ties);
  for (const double x : {0, 1000000, 777777, 777776, 777778}) EXPECT_THAT(all, Contains(x));
}

}  // namespace
}  // namespace posattn
