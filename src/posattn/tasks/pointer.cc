// Pointer chasing: an item's letter names a place, a the first, b the second, and a node answers
// with the number k places on: y_i = x of p(p(... p(i))). Every letter is drawn by itself, so
// several items may point to one place, also to their own.
#include <cmath>
#include <numeric>

#include "posattn/tasks/lettered.h"

namespace posattn {
namespace {

constexpr int standard_hops = 2;

// The chance that k hops lead back. The place i lies on a cycle of length d with probability
// (n - 1) (n - 2) ... (n - d + 1) / n^d, as its d - 1 successors are new and the last points to i;
// and k hops lead back where d divides k.
double chance_of_return(int n, int k) {
  double chance = 0, cycle = 1.0 / n;
  for (int d = 1; d <= n && d <= k; ++d) {
    if (k % d == 0) chance += cycle;
    cycle *= static_cast<double>(n - d) / n;
  }
  return chance;
}

class Pointer final : public ItemsTask {
 public:
  explicit Pointer(int hops)
      : ItemsTask({"items whose letters name places, a the first, as b 0.5, a -1", 0}),
        hops_(hops) {}

  std::string_view name() const override { return "pointer"; }
  std::string_view description() const override {
    return "the number k places on, where every letter names a place";
  }
  std::vector<TaskParameter> parameters() const override {
    return {{"hops", "places to go, k", standard_hops, 1, 8}};
  }
  std::unique_ptr<const Task> variant(std::span<const int> values) const override {
    return std::make_unique<Pointer>(values[0]);
  }

  int64_t symbol_inputs(int length) const override {
    const double inputs = std::pow(length, length);
    return inputs > most_listed ? 0 : static_cast<int64_t>(inputs);
  }
  void make_sample(RandomStream& random, const Sampling& sampling, int length,
                   const SampleRoom& room) const override {
    draw_numbers(random, sampling, room.values);
    int64_t listed = sampling.listed;  // its digits in base n are the places
    for (int32_t& place : room.tokens) {
      place = static_cast<int32_t>(listed < 0 ? random.below(static_cast<uint32_t>(length))
                                              : listed % length);
      if (listed > 0) listed /= length;
    }
    for (int i = 0; i < length; ++i) {
      int at = i;
      for (int hop = 0; hop < hops_; ++hop) at = room.tokens[at];
      room.targets[i] = room.values[at];
    }
  }

  // All places but one's own are equally likely.
  std::vector<Baseline> baselines() const override {
    return {{"query-blind", "the mean over all pointers: knows the numbers alone",
             [hops = hops_](int length, const SampleView& sample, std::span<float> outputs) {
               const double back = chance_of_return(length, hops);
               const double sum = std::accumulate(sample.values.begin(), sample.values.end(), 0.0);
               for (int i = 0; i < length; ++i) {
                 const double own = sample.values[i];
                 const double other = length > 1 ? (sum - own) / (length - 1) : own;
                 outputs[i] = static_cast<float>(back * own + (1 - back) * other);
               }
             }}};
  }

 private:
  int hops_;
};

}  // namespace

const Task& pointer_task() {
  static const Pointer task(standard_hops);
  return task;
}

}  // namespace posattn
