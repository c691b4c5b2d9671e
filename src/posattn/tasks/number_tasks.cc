// The tasks of n numbers in and n numbers out, each a function from x_0 ... x_{n-1} to
// y_0 ... y_{n-1}.
#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "posattn/tasks/task.h"

namespace posattn {
namespace {

using Input = std::span<const float>;
using Target = std::span<float>;

class NumberTask final : public Task {
 public:
  using Answer = void (*)(Input x, Target y);
  NumberTask(std::string_view name, std::string_view description, Answer answer)
      : name_(name), description_(description), answer_(answer) {}

  std::string_view name() const override { return name_; }
  std::string_view description() const override { return description_; }
  void solve(int /*length*/, Input input, Target target) const override { answer_(input, target); }

 private:
  std::string_view name_, description_;
  Answer answer_;
};

// y_i = x_0 + ... + x_i
void sums(Input x, Target y) {
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) y[i] = static_cast<float>(sum += x[i]);
}

// y_i = min(x_0, ..., x_i)
void minima(Input x, Target y) {
  std::partial_sum(x.begin(), x.end(), y.begin(), [](float a, float b) { return std::min(a, b); });
}

// y_i = max(x_0, ..., x_i)
void maxima(Input x, Target y) {
  std::partial_sum(x.begin(), x.end(), y.begin(), [](float a, float b) { return std::max(a, b); });
}

// y_i = median(x_0, ..., x_i); for an even count the midpoint of the middle two.
void medians(Input x, Target y) {
  std::vector<double> sorted;
  for (size_t i = 0; i < x.size(); ++i) {
    const double value = x[i];
    sorted.insert(std::upper_bound(sorted.begin(), sorted.end(), value), value);
    y[i] = static_cast<float>((sorted[i / 2] + sorted[(i + 1) / 2]) / 2);
  }
}

// y_i = the largest sum x_j + ... + x_k over all 0 <= j <= k <= i (Kadane's recurrence).
void largest_sums(Input x, Target y) {
  double ending_here = x[0], best = x[0];
  y[0] = x[0];
  for (size_t i = 1; i < x.size(); ++i) {
    const double value = x[i];
    ending_here = std::max(ending_here + value, value);
    best = std::max(best, ending_here);
    y[i] = static_cast<float>(best);
  }
}

void sorted_values(Input x, Target y) {
  std::ranges::copy(x, y.begin());
  std::ranges::sort(y);
}

}  // namespace

const Task& cumulative_sum_task() {
  static const NumberTask task("cumulative-sum", "sum of each prefix", sums);
  return task;
}

const Task& cumulative_min_task() {
  static const NumberTask task("cumulative-min", "minimum of each prefix", minima);
  return task;
}

const Task& cumulative_max_task() {
  static const NumberTask task("cumulative-max", "maximum of each prefix", maxima);
  return task;
}

const Task& cumulative_median_task() {
  static const NumberTask task("cumulative-median",
                               "median of each prefix (midpoint of the middle two)", medians);
  return task;
}

const Task& cumulative_max_subarray_task() {
  static const NumberTask task("cumulative-max-subarray",
                               "largest sum of a non-empty contiguous part of each prefix",
                               largest_sums);
  return task;
}

const Task& sort_task() {
  static const NumberTask task("sort", "the values in ascending order", sorted_values);
  return task;
}

// Two lists of n values, x_0 ... x_{n-1} and x_n ... x_{2n-1}, on 2n nodes:
// y_i = y_{n+i} = min over j <= i of x_j + x_{n+j}.

namespace {

class MinSum final : public Task {
 public:
  std::string_view name() const override { return "min-sum"; }
  std::string_view description() const override {
    return "running minimum of the sums of two lists (2n values)";
  }

  TaskShape shape(int length) const override { return {.real_nodes = 2 * length}; }

  void solve(int length, std::span<const float> input, std::span<float> target) const override {
    double best = std::numeric_limits<double>::infinity();
    for (int i = 0; i < length; ++i) {
      best = std::min(best, static_cast<double>(input[i]) + input[length + i]);
      target[i] = target[length + i] = static_cast<float>(best);
    }
  }
};

}  // namespace

const Task& min_sum_task() {
  static const MinSum task;
  return task;
}

}  // namespace posattn
