#include "posattn/tasks/dataset.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "posattn/base/error.h"

namespace posattn {
namespace {

DatasetRequest request_for(const char* task, int length, int64_t samples) {
  return {.task = &find_task(task),
          .length = length,
          .samples = samples,
          .range = training_range(2, false),
          .seed = 42};
}

bool starts_with(const Buffer<float>& values, const Buffer<float>& start) {
  return values.size() >= start.size() && std::equal(start.begin(), start.end(), values.begin());
}

TEST(Dataset, SamplesDependNeitherOnThreadsNorOnTheSizeOfTheSet) {
  for (const Task* task : tasks()) {
    const int length = std::max(7, task->shortest_length());
    DatasetRequest request = request_for("sort", length, 100);
    request.task = task;
    const Dataset one = make_dataset(request);
    request.threads = 3;
    const Dataset three = make_dataset(request);
    EXPECT_EQ(one.inputs, three.inputs) << task->name();
    EXPECT_EQ(one.targets, three.targets) << task->name();
    request.samples = 37;
    const Dataset fewer = make_dataset(request);
    EXPECT_EQ(static_cast<int64_t>(fewer.inputs.size()), 37 * task->shape(length).input_count());
    EXPECT_TRUE(starts_with(one.inputs, fewer.inputs)) << task->name();
    EXPECT_TRUE(starts_with(one.targets, fewer.targets)) << task->name();
  }
}

TEST(Dataset, EveryPartOfTheKeyChangesTheSamples) {
  // Samples are uniform words here, one value each: no two keys may agree on the first.
  std::set<std::vector<float>> seen;
  int sets = 0;
  for (const uint64_t seed : {0ull, 1ull, 1ull << 32}) {
    for (const Purpose purpose : {Purpose::train_data, Purpose::test_data}) {
      for (const double scale : {1.0, 1.5, 2.0, 3.0, 10.0, 1000.0}) {
        for (int length = 3; length < 9; ++length) {
          DatasetRequest request = request_for("sort", length, 2);
          request.seed = seed;
          request.purpose = purpose;
          request.scale = scale;
          const Dataset set = make_dataset(request);
          seen.insert({set.inputs.begin(), set.inputs.begin() + 3});
          seen.insert({set.inputs.begin() + length, set.inputs.begin() + length + 3});
          sets += 2;
        }
      }
    }
  }
  EXPECT_EQ(static_cast<int>(seen.size()), sets);
}

TEST(Dataset, TargetsAnswerTheInputs) {
  const Dataset set = make_dataset(request_for("min-sum", 5, 20));
  EXPECT_EQ(set.shape.real_nodes, 10);
  for (int64_t i = 0; i < set.samples; ++i) {
    float target[10];
    find_task("min-sum").solve(5, std::span(set.inputs).subspan(10 * i, 10), target);
    EXPECT_TRUE(std::equal(target, target + 10, set.targets.begin() + 10 * i));
  }
}

// Writes where each sample stands in the set and how many were made with it.
class MadeTogether final : public Task {
 public:
  std::string_view name() const override { return "made-together"; }
  std::string_view description() const override { return "for this test"; }
  int64_t block_samples() const override { return 10; }
  void make_samples(const SampleBlock& block) const override {
    for (int64_t i = 0; i < block.samples; ++i) {
      block.room.values[i] = static_cast<float>(block.first + i);
      block.room.targets[i] = static_cast<float>(block.samples);
    }
  }
};

TEST(Dataset, TasksMayMakeManySamplesAtOnce) {
  const MadeTogether task;
  DatasetRequest request = request_for("sort", 1, 25);
  request.task = &task;
  request.threads = 2;
  request.sets_before = 2;
  const Dataset set = make_dataset(request);
  for (int i = 0; i < 25; ++i) {
    EXPECT_EQ(set.inputs[i], 50 + i);
    EXPECT_EQ(set.targets[i], i < 20 ? 10 : 5);
  }
}

TEST(Dataset, VariableLengthsShareEqually) {
  const std::vector<Dataset> sets = make_variable_length(request_for("cumulative-sum", 8, 83));
  ASSERT_EQ(sets.size(), 8u);
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(sets[i].length, i + 1);
    EXPECT_EQ(sets[i].shape.real_nodes, i + 1);
    EXPECT_EQ(sets[i].samples, i < 3 ? 11 : 10);
    const Dataset alone = make_dataset(request_for("cumulative-sum", i + 1, sets[i].samples));
    EXPECT_EQ(sets[i].inputs, alone.inputs);
  }
}

TEST(Dataset, VariableLengthsMayBeginLater) {
  DatasetRequest request = request_for("cumulative-sum", 8, 20);
  request.shortest_length = 6;
  const std::vector<Dataset> sets = make_variable_length(request);
  ASSERT_EQ(sets.size(), 3u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(sets[i].length, 6 + i);
    EXPECT_EQ(sets[i].samples, i < 2 ? 7 : 6);
    EXPECT_EQ(sets[i].inputs,
              make_dataset(request_for("cumulative-sum", 6 + i, sets[i].samples)).inputs);
  }
}

TEST(Dataset, MaskFollowsTheTask) {
  EXPECT_EQ(loss_mask(find_task("path"), 3), (std::vector<uint8_t>{0, 1, 1, 0, 0, 1, 0, 0, 0}));
  EXPECT_EQ(loss_mask(find_task("min-sum"), 2), std::vector<uint8_t>(4, 1));
}

void expect_refused(const DatasetRequest& request, bool variable_length) {
  try {
    if (variable_length) {
      make_variable_length(request);
    } else {
      make_dataset(request);
    }
    FAIL() << "accepted length " << request.length << ", " << request.samples << " samples";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::configuration);
    EXPECT_FALSE(error.expected().empty());
  }
}

TEST(Dataset, RefusesImpossibleSizes) {
  expect_refused(request_for("sort", 0, 10), false);
  expect_refused(request_for("sort", -3, 10), true);
  expect_refused(request_for("sort", 2'000'000'000, 1), false);
  expect_refused(request_for("sort", 8, -1), false);
  expect_refused(request_for("sort", 8, int64_t{1} << 40), false);
  expect_refused(request_for("path", 1, 10), false);
  expect_refused(request_for("path", 1 << 20, 1), false);
  expect_refused(request_for("path", 8, 10), true);
  for (const int shortest : {1, 9}) {  // a cycle has at least 6 nodes here
    DatasetRequest request = request_for("one-two-cycle", 8, 10);
    request.task = &find_task("one-two-cycle", "form=pairs");
    request.shortest_length = shortest;
    expect_refused(request, true);
  }
}

}  // namespace
}  // namespace posattn
