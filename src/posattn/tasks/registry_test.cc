#include <gtest/gtest.h>

#include <algorithm>

#include "posattn/base/error.h"
#include "posattn/tasks/dataset.h"

namespace posattn {
namespace {

// Numbers and tokens in, classes out: the class of a node is its token, or that of its number's
// sign; nodes that hold 0 do not count.
class Mixed final : public Task {
 public:
  explicit Mixed(std::string name) : name_(std::move(name)) {}
  std::string_view name() const override { return name_; }
  std::string_view description() const override { return "a task of a test"; }
  TaskShape shape(int length) const override {
    return {.real_nodes = length, .data_columns = 1, .output_columns = 4, .vocabulary = 2};
  }
  Loss loss() const override { return Loss::cross_entropy; }
  std::vector<TestAxis> test_axes() const override { return {{"share", "of tokens"}}; }
  void make_sample(RandomStream& random, const Sampling& sampling, int length,
                   const SampleRoom& room) const override {
    draw(random, sampling.range, length, room.values);
    const double share = sampling.axis == "share" ? sampling.x : 0.5;
    for (int i = 0; i < length; ++i) {
      const bool token = random.uniform(0, 1) < share;
      room.tokens[i] = token ? static_cast<int32_t>(random.below(2)) : -1;
      room.labels[i] = token ? room.tokens[i] : room.values[i] > 0 ? 2 : 3;
      if (room.values[i] == 0 && !token) room.labels[i] = -1;
    }
  }

 private:
  std::string name_;
};

TEST(Registry, ARegisteredTaskIsFoundAndMakesItsColumns) {
  register_task(std::make_unique<Mixed>("mixed-of-a-test"));
  const Task& task = find_task("mixed-of-a-test");
  EXPECT_EQ(tasks().back(), &task);
  const auto make = [&](const char* axis, double x) {
    return make_dataset({.task = &task,
                         .length = 5,
                         .samples = 40,
                         .range = training_range(2, false),
                         .seed = 3,
                         .purpose = Purpose::test_data,
                         .scale = x,
                         .axis = axis});
  };
  const Dataset set = make("c", 1);
  EXPECT_EQ(set.inputs.size(), 200u);
  EXPECT_EQ(set.tokens.size(), 200u);
  EXPECT_EQ(set.labels.size(), 200u);
  EXPECT_TRUE(set.targets.empty());
  EXPECT_TRUE(std::ranges::all_of(set.labels, [](int32_t label) { return label < 4; }));
  // The axis decides, and has random numbers of its own.
  const Dataset all = make("share", 1), none = make("share", 0);
  EXPECT_EQ(std::ranges::count(all.tokens, -1), 0);
  EXPECT_EQ(std::ranges::count(none.tokens, -1), 200);
  EXPECT_NE(all.inputs, set.inputs);
}

TEST(Registry, RefusesNamesThatAreTakenOrCannotBeFiles) {
  for (const char* name : {"sort", "", "My Task", "../x"}) {
    EXPECT_THROW(register_task(std::make_unique<Mixed>(name)), Error) << name;
  }
}

TEST(Task, WithoutAnAnswerToNumbersSaysSo) {
  float number = 0;
  EXPECT_THROW(Mixed("x").solve(1, {&number, 1}, {&number, 1}), Error);
}

}  // namespace
}  // namespace posattn
