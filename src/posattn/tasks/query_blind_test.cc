#include "posattn/tasks/query_blind.h"

#include <gtest/gtest.h>

#include "posattn/tasks/dataset.h"

namespace posattn {
namespace {

constexpr Question all_questions[] = {Question::minimum, Question::sum, Question::maximum};

double mean_over_all_choices(Question question, std::span<const float> prices) {
  double sum = 0, choices = 0;
  const int count = static_cast<int>(prices.size());
  for (int mask = 0; mask < 1 << count; ++mask) {
    std::vector<float> asked;
    for (int i = 0; i < count; ++i) {
      if ((mask >> i & 1) != 0) asked.push_back(prices[i]);
    }
    if (asked.size() != asked_categories) continue;
    sum += MixedPrompt::answer_to(question, asked);
    ++choices;
  }
  return sum / choices;
}

TEST(QueryBlind, IsTheMeanOverAllChoices) {
  for (const int categories : {4, 5, 8, 11}) {
    for (uint32_t i = 0; i < 20; ++i) {
      RandomStream random(3, Purpose::test_data, 0, i);
      const MixedPrompt prompt = draw_prompt(random, {.categories = categories});
      for (const Question question : all_questions) {
        const double mean = mean_over_all_choices(question, prompt.prices);
        EXPECT_NEAR(query_blind_answer(question, prompt.prices), mean, 1e-5);
      }
    }
  }
}

double mean_squared_error(const Task& task, const Baseline& baseline, const Dataset& set) {
  double squared = 0;
  const int64_t nodes = set.shape.real_nodes;
  std::vector<float> outputs(static_cast<size_t>(nodes));
  for (int64_t i = 0; i < set.samples; ++i) {
    baseline.predict(set.length,
                     {.values = std::span(set.inputs).subspan(i * nodes, nodes),
                      .tokens = std::span(set.tokens).subspan(i * nodes, nodes)},
                     outputs);
    const double error = outputs[0] - set.targets[i * nodes];
    squared += error * error;
  }
  EXPECT_GT(set.samples, 0) << task.name();
  return squared / static_cast<double>(set.samples);
}

Dataset samples_of(const Task& task, const char* axis, double x) {
  return make_dataset({.task = &task,
                       .samples = 20000,
                       .range = training_range(5, false),
                       .purpose = Purpose::test_data,
                       .scale = x,
                       .axis = axis});
}

// On samples of the task, the error of the blind answer is the variance of the answer over all
// choices, here from the order statistics; that of the oracle is nothing.
TEST(QueryBlind, BaselinesOfTheTasksOnTheirSamples) {
  for (const char* name : {"mixed-min", "mixed-sum", "mixed-multitask"}) {
    SCOPED_TRACE(name);
    const Task& task = find_task(name);
    const std::vector<Baseline> baselines = task.baselines();
    ASSERT_EQ(baselines.size(), 2);
    ASSERT_EQ(baselines[0].name, "query-blind");
    ASSERT_EQ(baselines[1].name, "oracle");
    const Dataset set = samples_of(task, "c", 1);
    const double blind = mean_squared_error(task, baselines[0], set);
    // Of eight uniform numbers in [0, 1]; the squared width of a range inside a range is 25 / 36.
    const double expected = task.name() == "mixed-sum" ? 1.0 / 6 : 1787.0 / 110250;
    EXPECT_NEAR(blind, 25.0 / 36 * expected, 0.05 * expected);
    EXPECT_EQ(mean_squared_error(task, baselines[1], set), 0);
    // Somebody who answers another question is off by two spreads; the blind one does not notice.
    const Dataset swapped = samples_of(task, "swapped", 1);
    EXPECT_NEAR(mean_squared_error(task, baselines[0], swapped), blind, 0.1 * blind);
    EXPECT_NEAR(mean_squared_error(task, baselines[1], swapped), 2 * blind, 0.2 * blind);
    EXPECT_EQ(mean_squared_error(task, baselines[1], samples_of(task, "swapped", 0)), 0);
  }
}

}  // namespace
}  // namespace posattn
