// Tasks of nodes and their neighbours, and tasks with pairs that are wrong.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "posattn/base/error.h"
#include "posattn/tasks/dataset.h"

namespace posattn {
namespace {

Dataset graphs(int length, int64_t samples, bool integers = false,
               std::string_view task = "neighbour-min", std::string_view set = {}) {
  return make_dataset({.task = &find_task(task, set),
                       .length = length,
                       .samples = samples,
                       .range = training_range(2, integers),
                       .seed = 3});
}

// Of one node's value and its neighbours'.
float answer_of(std::string_view task, std::vector<float> seen) {
  if (task == "neighbour-min") return *std::ranges::min_element(seen);
  const double sum = std::accumulate(seen.begin(), seen.end(), 0.0);
  return static_cast<float>(task == "neighbour-sum" ? sum : sum / static_cast<double>(seen.size()));
}

TEST(NeighbourTasks, AnswersFollowFromTheGraph) {
  for (const char* task : {"neighbour-min", "neighbour-sum", "neighbour-mean"}) {
    for (const int n : {1, 2, 7}) {
      for (const bool integers : {false, true}) {
        const Dataset set = graphs(n, 200, integers, task);
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
            EXPECT_EQ(set.targets[s * n + i], answer_of(task, seen));
          }
        }
      }
    }
  }
}

// The graph is the same whatever its pairs hold, and so are the values and the answers.
TEST(NeighbourTasks, StructureChangesPairsAlone) {
  for (const char* task : {"neighbour-mean", "distance-to-marked"}) {
    const Dataset edges = graphs(9, 50, false, task);
    for (const char* structure :
         {"distances", "walks", "laplacian", "edges+walks", "edges+laplacian"}) {
      SCOPED_TRACE(structure);
      const Dataset set = graphs(9, 50, false, task, fmt::format("structure={},size=3", structure));
      EXPECT_EQ(set.inputs, edges.inputs);
      EXPECT_EQ(set.targets, edges.targets);
      EXPECT_EQ(set.labels, edges.labels);
      for (size_t pair = 0; pair < edges.pair_classes.size(); ++pair) {
        const bool edge = edges.pair_classes[pair] == 1;
        if (set.shape.pair_classes > 0) {
          EXPECT_EQ(set.pair_classes[pair] == 1, edge);
        }
        const bool diagonal = pair % 81 % 10 == 0;
        if (std::string_view(structure).ends_with("walks") && !diagonal) {
          EXPECT_EQ(set.pairs[pair * 3] > 0, edge);
        }
      }
    }
  }
}

Dataset tested(const char* task, const char* axis, double x, int length, int64_t samples = 200,
               const ValueRange& range = training_range(2, false)) {
  return make_dataset({.task = &find_task(task),
                       .length = length,
                       .samples = samples,
                       .range = range,
                       .seed = 4,
                       .purpose = Purpose::test_data,
                       .scale = x,
                       .axis = axis});
}

TEST(NeighbourTasks, AxesDecideTheGraph) {
  for (const char* task : {"neighbour-sum", "distance-to-marked"}) {
    const auto share_of = [](const Dataset& set) {
      const double pairs = static_cast<double>(set.samples) * set.length * (set.length - 1);
      return static_cast<double>(std::ranges::count(set.pair_classes, 1)) / pairs;
    };
    for (const double share : {0.0, 0.2, 0.8, 1.0}) {
      EXPECT_NEAR(share_of(tested(task, "density", share, 10)), share, 0.02) << task;
    }
    EXPECT_NEAR(share_of(tested(task, "graphs", 0, 10)), 0.3, 0.03);
    EXPECT_NEAR(share_of(tested(task, "graphs", 1, 10)), 2 * 9 / 90.0, 1e-12);
    EXPECT_NEAR(share_of(tested(task, "graphs", 2, 12)), 2 * 17 / 132.0, 1e-12);
    EXPECT_THROW(tested(task, "graphs", 3, 10), Error);
    EXPECT_THROW(tested(task, "density", 1.5, 10), Error);
  }
  const Dataset large = tested("neighbour-sum", "c", 9, 8, 200, test_range(2, 9, false));
  EXPECT_GT(std::ranges::max(large.inputs), 16);
}

// Marks spread hop by hop until nothing changes.
TEST(DistanceToMarked, ClassesAreHopsToTheNearestMark) {
  for (const double family : {0.0, 1.0, 2.0}) {
    for (const int n : {1, 2, 8, 20}) {
      const Dataset set = tested("distance-to-marked", "graphs", family, n, 100);
      ASSERT_EQ(set.shape.output_columns, 9);
      for (int s = 0; s < 100; ++s) {
        const float* mark = set.inputs.data() + s * n;
        const int32_t* edge = set.pair_classes.data() + s * n * n;
        const auto marks = std::count(mark, mark + n, 1.0f);
        EXPECT_TRUE(marks == 1 || marks == 2);
        EXPECT_EQ(std::count(mark, mark + n, 0.0f), n - marks);
        std::vector<int32_t> hops(n, n);
        for (int i = 0; i < n; ++i) hops[i] = mark[i] == 1 ? 0 : n;
        for (int round = 0; round < n; ++round) {
          for (int at = 0; at < n * n; ++at) {
            if (edge[at] == 1) hops[at / n] = std::min(hops[at / n], hops[at % n] + 1);
          }
        }
        for (int i = 0; i < n; ++i) {
          const bool far = hops[i] == n || hops[i] > 7;
          EXPECT_EQ(set.labels[s * n + i], far ? 8 : hops[i]);
        }
      }
    }
  }
}

// No other constant class is right more often for nodes without a mark.
TEST(DistanceToMarked, BaselineAnswersTheMostFrequentClasses) {
  const Dataset set = graphs(16, 4000, false, "distance-to-marked");
  std::vector<int64_t> counts[3] = {{}, std::vector<int64_t>(9), std::vector<int64_t>(9)};
  const Baseline baseline = find_task("distance-to-marked").baselines().at(0);
  std::vector<float> found(16 * 9);
  std::vector<int32_t> answers[3];
  for (int s = 0; s < 4000; ++s) {
    const std::span<const float> marks(set.inputs.data() + s * 16, 16);
    const auto marked = std::ranges::count(marks, 1.0f);
    baseline.predict(16, {.values = marks, .tokens = {}}, found);
    for (int i = 0; i < 16; ++i) {
      const auto row = found.begin() + i * 9;
      const auto answer = static_cast<int32_t>(std::max_element(row, row + 9) - row);
      if (marks[i] == 1) {
        EXPECT_EQ(answer, 0);
        EXPECT_EQ(set.labels[s * 16 + i], 0);
      } else {
        ++counts[marked][set.labels[s * 16 + i]];
        answers[marked].push_back(answer);
      }
    }
  }
  for (const int marked : {1, 2}) {
    const auto mode = std::ranges::max_element(counts[marked]) - counts[marked].begin();
    EXPECT_EQ(std::ranges::count(answers[marked], mode), std::ssize(answers[marked])) << marked;
  }
}

// p is uniform in [0.1, 0.5]: the mean share of edges is 0.3, and shares differ by more than those
// of graphs with one p would.
TEST(NeighbourTasks, GraphsHaveDifferentDensities) {
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
double mean_answer(std::string_view task, const std::vector<float>& x, size_t node) {
  constexpr int steps = 400;
  double mean = 0;
  for (int step = 0; step < steps; ++step) {
    const double p = 0.1 + 0.4 * (step + 0.5) / steps;
    for (uint32_t neighbours = 0; neighbours < 1u << x.size(); ++neighbours) {
      if ((neighbours >> node & 1) != 0) continue;
      double chance = 1;
      std::vector<float> seen = {x[node]};
      for (size_t j = 0; j < x.size(); ++j) {
        if (j == node) continue;
        const bool edge = (neighbours >> j & 1) != 0;
        chance *= edge ? p : 1 - p;
        if (edge) seen.push_back(x[j]);
      }
      mean += chance * answer_of(task, seen) / steps;
    }
  }
  return mean;
}

TEST(NeighbourTasks, BlindBaselineIsTheMeanOverGraphs) {
  for (const char* task : {"neighbour-min", "neighbour-sum", "neighbour-mean"}) {
    const std::vector<Baseline> baselines = find_task(task).baselines();
    ASSERT_EQ(baselines.size(), 1u);
    for (const std::vector<float>& x :
         {std::vector{1.5f}, std::vector{0.5f, -1.25f, 2.0f, 0.5f, -0.5f}}) {
      std::vector<float> found(x.size());
      baselines[0].predict(static_cast<int>(x.size()), {.values = x, .tokens = {}}, found);
      for (size_t i = 0; i < x.size(); ++i) {
        EXPECT_NEAR(found[i], mean_answer(task, x, i), 1e-5) << task << i;
      }
    }
  }
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
