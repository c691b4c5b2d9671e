// Averages at places that are data (arXiv 2306.02896, "q-sparse averaging"): node i holds a number
// z_i and the places of q nodes, and asks for the mean of their numbers. The columns are z, then
// for each of the n places 1 if node i asks for it and 0 if not. Each z_i is drawn on its own by
// the rule of ValueRange, so that nothing is known of one from the others; the places are q
// different ones, all sets alike.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "posattn/base/error.h"
#include "posattn/tasks/subset.h"
#include "posattn/tasks/task.h"

namespace posattn {
namespace {

// Where part h of n nodes in `parts` parts begins; they differ in size by one at most.
int first_of_part(int h, int parts, int n) { return static_cast<int>(int64_t{n} * h / parts); }

// One layer of attention from positions with H heads tells a node H fixed sums of the numbers z,
// whatever it asks for; its own number it knows. Here head h tells the mean of the h-th part of the
// nodes, and the answer for a place is the mean of the others in its part. No other H sums, one of
// them that of all z, and no other linear reader of them do better on average: with all z of
// variance s^2, for H <= n / 2,
//   error = s^2 / q * (n - q) / (n - 1) * (1 - (H + 1) / n).
// The reason: places y (each 1 / q) have E[y y^T] = a I + b 1 1^T with a = (n - q) / (q n (n - 1)),
// and what is known spans H + 1 directions, one of them 1. So n - H - 1 directions stay unknown,
// and each costs a s^2.
void read_sums(int n, const SampleView& sample, std::span<float> outputs) {
  const int parts = std::clamp(sample.model.heads, 1, n);
  const int64_t columns = n + 1;
  std::vector<double> sums(parts);
  std::vector<int> part(n), size(parts);
  for (int h = 0; h < parts; ++h) {
    for (int j = first_of_part(h, parts, n); j < first_of_part(h + 1, parts, n); ++j) {
      part[j] = h;
      sums[h] += sample.values[j * columns];
      ++size[h];
    }
  }
  for (int i = 0; i < n; ++i) {
    const std::span<const float> node = sample.values.subspan(i * columns, columns);
    double total = 0, q = 0;
    for (int j = 0; j < n; ++j) {
      if (node[1 + j] == 0) continue;
      const bool with_own = part[j] == part[i];
      total += j == i ? double{node[0]}
                      : (sums[part[j]] - (with_own ? node[0] : 0)) / (size[part[j]] - with_own);
      ++q;
    }
    outputs[i] = static_cast<float>(q > 0 ? total / q : 0);
  }
}

class SparseAverage final : public Task {
 public:
  explicit SparseAverage(int q) : q_(q) {}

  std::string_view name() const override { return "sparse-average"; }
  std::string_view description() const override {
    return "mean of the numbers at q places that each node names";
  }
  std::vector<TaskParameter> parameters() const override {
    return {{"q", "places that a node names", 3, 1, 64}};
  }
  std::unique_ptr<const Task> variant(std::span<const int> values) const override {
    return std::make_unique<SparseAverage>(values[0]);
  }
  TaskShape shape(int length) const override {
    return {.real_nodes = length, .data_columns = 1 + length};
  }
  int shortest_length() const override { return q_; }
  bool supports_variable_length() const override { return false; }
  std::vector<TestAxis> test_axes() const override {
    return {{"c", "numbers in [-range c, range c]"},
            {"q", "places that a node names", "number of places q", true}};
  }

  void make_sample(RandomStream& random, const Sampling& sampling, int length,
                   const SampleRoom& room) const override {
    const double q = sampling.axis == "q" ? sampling.x : q_;
    if (q < 1 || q > length || q != std::floor(q)) {
      throw Error(ExitCode::usage, fmt::format("q = {} of {} nodes", q, length),
                  fmt::format("a whole number from 1 to {}", length));
    }
    const int64_t columns = 1 + length;
    for (int i = 0; i < length; ++i) {
      const std::span<float> node = room.values.subspan(i * columns, columns);
      draw_values(random, sampling.range, node.first(1));
      std::ranges::copy(random_subset(random, length, static_cast<int>(q)), node.begin() + 1);
    }
    solve(length, room.values, room.targets);
  }

  void solve(int length, std::span<const float> input, std::span<float> target) const override {
    const int64_t columns = 1 + length;
    for (int i = 0; i < length; ++i) {
      double total = 0, places = 0;
      for (int j = 0; j < length; ++j) {
        const double mark = input[i * columns + 1 + j];
        total += mark * input[j * columns];
        places += mark;
      }
      target[i] = static_cast<float>(places == 0 ? 0 : total / places);
    }
  }

  std::vector<Baseline> baselines() const override {
    return {{"sums-of-heads",
             "the best that one layer of attention from positions can do with the model's heads",
             read_sums},
            {"zero", "answers 0", [](int, const SampleView&, std::span<float> outputs) {
               std::ranges::fill(outputs, 0.0F);
             }}};
  }

 private:
  int q_;
};

}  // namespace

const Task& sparse_average_task() {
  static const SparseAverage task(3);
  return task;
}

}  // namespace posattn
