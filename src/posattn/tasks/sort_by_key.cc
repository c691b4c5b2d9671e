// Items of a letter and a number in the order of their letters: node j answers with the number
// whose letter is the j-th of the alphabet among them.
#include <algorithm>
#include <numeric>

#include "posattn/tasks/lettered.h"

namespace posattn {
namespace {

class SortByKey final : public ItemsTask {
 public:
  SortByKey() : ItemsTask({"items, as a 0.5, b -1, c 2", letter_count}) {}

  std::string_view name() const override { return "sort-by-key"; }
  std::string_view description() const override {
    return "numbers in the order of the letters that stand with them";
  }

  int64_t symbol_inputs(int length) const override { return orders_of_letters(length); }
  void make_sample(RandomStream& random, const Sampling& sampling, int length,
                   const SampleRoom& room) const override {
    draw_numbers(random, sampling, room.values);
    draw_letters(random, sampling, room.tokens);
    std::vector<int> order(length);
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, {}, [&](int item) { return room.tokens[item]; });
    std::ranges::transform(order, room.targets.begin(),
                           [&](int item) { return room.values[item]; });
  }

  std::vector<Baseline> baselines() const override {
    return {{"query-blind", "the mean of the numbers: knows no letter",
             [](int /*length*/, const SampleView& sample, std::span<float> outputs) {
               const double sum = std::accumulate(sample.values.begin(), sample.values.end(), 0.0);
               std::ranges::fill(outputs,
                                 static_cast<float>(sum / static_cast<double>(outputs.size())));
             }}};
  }
};

}  // namespace

const Task& sort_by_key_task() {
  static const SortByKey task;
  return task;
}

}  // namespace posattn
