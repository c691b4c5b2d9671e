// The task of graphs, and tasks with pairs that are wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "posattn/base/error.h"
#include "posattn/tasks/dataset.h"

namespace posattn {
namespace {

Dataset graphs(int length, int64_t samples, bool integers = false) {
  return make_dataset({.task = &find_task("neighbour-min"),
                       .length = length,
                       .samples = samples,
                       .range = training_range(2, integers),
                       .seed = 3});
}

TEST(NeighbourMin, AnswersAreLeastAmongNeighboursInAGraph) {
  for (const int n : {1, 2, 7}) {
    for (const bool integers : {false, true}) {
      const Dataset set = graphs(n, 200, integers);
      EXPECT_EQ(set.shape.pair_classes, 2);
      EXPECT_TRUE(set.pairs.empty());
      ASSERT_EQ(static_cast<int>(set.pair_classes.size()), 200 * n * n);
      for (int s = 0; s < 200; ++s) {
        const float* x = set.inputs.data() + s * n;
        const int32_t* edge = set.pair_classes.data() + s * n * n;
        for (int i = 0; i < n; ++i) {
          std::vector<float> seen = {x[i]};
          EXPECT_EQ(edge[i * n + i], 0);
          for (int j = 0; j < n; ++j) {
            EXPECT_EQ(edge[i * n + j], edge[j * n + i]);
            if (edge[i * n + j] == 1) seen.push_back(x[j]);
          }
          EXPECT_EQ(set.targets[s * n + i], *std::ranges::min_element(seen));
        }
      }
    }
  }
}

// p is uniform in [0.1, 0.5]: the mean share of edges is 0.3, and shares differ by more than those
// of graphs with one p would.
TEST(NeighbourMin, GraphsHaveDifferentDensities) {
  const int n = 16, samples = 2000, pairs = n * (n - 1) / 2;
  const Dataset set = graphs(n, samples);
  double sum = 0, squares = 0;
  for (int s = 0; s < samples; ++s) {
    const auto first = set.pair_classes.begin() + s * n * n;
    const double share = std::count(first, first + n * n, 1) / (2.0 * pairs);
    sum += share;
    squares += share * share;
  }
  const double mean = sum / samples, variance = squares / samples - mean * mean;
  EXPECT_NEAR(mean, 0.3, 0.01);
  // Of p: 0.4^2 / 12; and of the edges, E p (1 - p) / pairs.
  EXPECT_NEAR(variance, 0.16 / 12 + (0.3 - 0.09 - 0.16 / 12) / pairs, 0.0015);
}

// The mean over p, by midpoints, and over all sets of neighbours.
double mean_answer(const std::vector<float>& x, size_t node) {
  constexpr int steps = 400;
  double mean = 0;
  for (int step = 0; step < steps; ++step) {
    const double p = 0.1 + 0.4 * (step + 0.5) / steps;
    for (uint32_t neighbours = 0; neighbours < 1u << x.size(); ++neighbours) {
      if ((neighbours >> node & 1) != 0) continue;
      double chance = 1;
      float least = x[node];
      for (size_t j = 0; j < x.size(); ++j) {
        if (j == node) continue;
        const bool edge = (neighbours >> j & 1) != 0;
        chance *= edge ? p : 1 - p;
        if (edge) least = std::min(least, x[j]);
      }
      mean += chance * least / steps;
    }
  }
  return mean;
}

TEST(NeighbourMin, BlindBaselineIsTheMeanOverGraphs) {
  const std::vector<Baseline> baselines = find_task("neighbour-min").baselines();
  ASSERT_EQ(baselines.size(), 1u);
  const std::vector<float> x = {0.5f, -1.25f, 2, 0.5f, -0.5f};
  std::vector<float> found(x.size());
  baselines[0].predict(5, {.values = x, .tokens = {}}, found);
  for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(found[i], mean_answer(x, i), 1e-5) << i;
}

// Numbers and classes of its choice.
class PairTask final : public Task {
 public:
  PairTask(float number, int32_t one_class) : number_(number), class_(one_class) {}
  std::string_view name() const override { return "pairs-of-a-test"; }
  std::string_view description() const override { return "a task of a test"; }
  TaskShape shape(int length) const override {
    return {.real_nodes = length, .pair_columns = 2, .pair_classes = 3};
  }
  void make_sample(RandomStream& random, const Sampling& sampling, int length,
                   const SampleRoom& room) const override {
    draw(random, sampling.range, length, room.values);
    std::ranges::copy(room.values, room.targets.begin());
    for (size_t i = 0; i < room.pairs.size(); ++i) room.pairs[i] = static_cast<float>(i);
    std::ranges::fill(room.pair_classes, 1);
    room.pairs.back() = number_;
    room.pair_classes.back() = class_;
  }

 private:
  float number_;
  int32_t class_;
};

TEST(Pairs, OfEverySampleHaveTheirPlace) {
  const PairTask task(-1, 2);
  const Dataset set = make_dataset({.task = &task, .length = 2, .samples = 100, .range = {}});
  ASSERT_EQ(set.pairs.size(), 800u);
  ASSERT_EQ(set.pair_classes.size(), 400u);
  for (int i = 0; i < 800; ++i) EXPECT_EQ(set.pairs[i], i % 8 == 7 ? -1 : i % 8);
  for (int i = 0; i < 400; ++i) EXPECT_EQ(set.pair_classes[i], i % 4 == 3 ? 2 : 1);
}

TEST(Pairs, OfATaskThatMakesBadOnesAreRefused) {
  const struct {
    float number;
    int32_t of_class;
    const char* part;
  } rows[] = {{NAN, 0, "nan for the pair of nodes 1 and 1 in sample 0"},
              {std::numeric_limits<float>::infinity(), 0, "inf for the pair"},
              {0, 3, "class 3 of the pair of nodes 1 and 1 in sample 0"},
              {0, -1, "class -1"}};
  for (const auto& row : rows) {
    const PairTask task(row.number, row.of_class);
    try {
      make_dataset({.task = &task, .length = 2, .samples = 4, .range = {}});
      FAIL() << row.part;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::configuration);
      EXPECT_THAT(error.problem(), testing::HasSubstr(row.part));
      EXPECT_THAT(error.problem(), testing::HasSubstr("pairs-of-a-test"));
    }
  }
}

TEST(Pairs, CountAmongTheNumbersOfASet) {
  EXPECT_THROW(graphs(1 << 18, 1 << 10), Error);  // the nodes alone would fit
}

}  // namespace
}  // namespace posattn
