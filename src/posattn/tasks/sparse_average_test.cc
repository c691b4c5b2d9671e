// The task, and the bound that its baseline meets.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "posattn/base/error.h"
#include "posattn/tasks/dataset.h"

namespace posattn {
namespace {

struct AskedAverages {
  std::string set = {};
  std::string axis = "c";
  double x = 1;
  int samples = 200;
};

Dataset samples_of(int n, const AskedAverages& asked) {
  return make_dataset({.task = &find_task("sparse-average", asked.set),
                       .length = n,
                       .samples = asked.samples,
                       .range = test_range(2, asked.axis == "c" ? asked.x : 1, false),
                       .seed = 3,
                       .purpose = Purpose::test_data,
                       .scale = asked.x,
                       .axis = asked.axis});
}

TEST(SparseAverage, AnswersAreMeansOfTheNamedNumbers) {
  const struct {
    AskedAverages asked;
    int n, q;
  } rows[] = {{{}, 3, 3},
              {{}, 8, 3},
              {{.set = "q=1"}, 8, 1},
              {{.set = "q=5"}, 6, 5},
              {{.set = "q=2", .axis = "q", .x = 7}, 9, 7},
              {{.axis = "c", .x = 10}, 8, 3}};
  for (const auto& [asked, n, q] : rows) {
    const Dataset set = samples_of(n, asked);
    for (int64_t s = 0; s < set.samples; ++s) {
      const float* row = set.inputs.data() + s * n * (n + 1);
      for (int i = 0; i < n; ++i) {
        std::vector<double> named;
        for (int j = 0; j < n; ++j) {
          if (row[i * (n + 1) + 1 + j] == 1) named.push_back(row[j * (n + 1)]);
        }
        ASSERT_EQ(static_cast<int>(named.size()), q);
        EXPECT_NEAR(set.targets[s * n + i], std::accumulate(named.begin(), named.end(), 0.0) / q,
                    1e-6 * asked.x);
      }
    }
  }
}

// All sets of places come up alike: for n = 5, q = 2 there are ten.
TEST(SparseAverage, AllSetsOfPlacesAreAlike) {
  const Dataset set = samples_of(5, {.set = "q=2", .samples = 4000});
  std::vector<int> seen(32);
  for (int64_t node = 0; node < set.samples * 5; ++node) {
    int places = 0;
    for (int j = 0; j < 5; ++j) places |= set.inputs[node * 6 + 1 + j] == 1 ? 1 << j : 0;
    ++seen[places];
  }
  EXPECT_EQ(std::ranges::count_if(seen, [](int count) { return count > 0; }), 10);
  for (const int count : seen) {
    if (count > 0) {
      EXPECT_NEAR(count, 2000, 5 * std::sqrt(2000 * 0.9));
    }
  }
}

double error_of(const Dataset& set, const Baseline& baseline, int heads) {
  const int n = set.length;
  std::vector<float> found(n);
  double error = 0;
  for (int64_t s = 0; s < set.samples; ++s) {
    baseline.predict(n,
                     {.values = std::span(set.inputs).subspan(s * n * (n + 1), n * (n + 1)),
                      .tokens = {},
                      .model = {.heads = heads}},
                     found);
    for (int i = 0; i < n; ++i) {
      error +=
          std::pow(found[i] - set.targets[s * n + i], 2) / static_cast<double>(set.samples * n);
    }
  }
  return error;
}

// The formula of the bound. A number of [-2, 2] by the rule of ValueRange has variance 2 * 2^2 / 9.
TEST(SparseAverage, SumsOfHeadsMeetTheBound) {
  for (const auto& [n, q] : {std::pair{16, 1}, {16, 3}, {32, 3}}) {
    const Task& task = find_task("sparse-average", q == 1 ? "q=1" : "");
    const Dataset set = samples_of(n, {.set = q == 1 ? "q=1" : "", .samples = 3000});
    const std::vector<Baseline> baselines = task.baselines();
    for (const int heads : {1, 2, 4, 8}) {
      const double bound = 8.0 / 9 / q * (n - q) / (n - 1) * (1 - (heads + 1.0) / n);
      EXPECT_NEAR(error_of(set, baselines[0], heads), bound, 0.04 * bound) << n << ' ' << heads;
    }
    EXPECT_LT(error_of(set, baselines[0], n), 1e-13);
    EXPECT_LT(error_of(set, baselines[0], 2 * n), 1e-13);
    EXPECT_NEAR(error_of(set, baselines[1], 1), 8.0 / 9 / q, 0.03);
  }
}

// Recorded runs were trained and tested on such samples.
TEST(SparseAverage, GoldenSample) {
  const Dataset set = samples_of(3, {.set = "q=2", .samples = 1});
  const float inputs[] = {1.09282f, 1, 0, 1, 0.398584f, 0, 1, 1, 1.12963f, 1, 0, 1};
  const float targets[] = {1.11122f, 0.764106f, 1.11122f};
  for (int i = 0; i < 12; ++i) EXPECT_NEAR(set.inputs[i], inputs[i], 1e-5);
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(set.targets[i], targets[i], 1e-5);
}

TEST(SparseAverage, RefusesMorePlacesThanNodes) {
  EXPECT_THROW(samples_of(2, {}), Error);
  EXPECT_THROW(samples_of(8, {.axis = "q", .x = 9}), Error);
  EXPECT_THROW(samples_of(8, {.axis = "q", .x = 1.5}), Error);
}

}  // namespace
}  // namespace posattn
