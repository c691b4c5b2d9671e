#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "posattn/base/error.h"
#include "posattn/evaluation/evaluate.h"
#include "posattn/model/spec/parameters.h"

namespace posattn {
namespace {

// The class of a node is its token; the share of token 1 is the task's own axis.
class Coins final : public Task {
 public:
  std::string_view name() const override { return "coins-of-a-test"; }
  std::string_view description() const override { return "heads or tails"; }
  TaskShape shape(int length) const override {
    return {.real_nodes = length, .data_columns = 0, .output_columns = 2, .vocabulary = 2};
  }
  Loss loss() const override { return Loss::cross_entropy; }
  std::vector<TestAxis> test_axes() const override { return {{"share", "of heads"}}; }
  void make_sample(RandomStream& random, const Sampling& sampling, int length,
                   const SampleRoom& room) const override {
    const double share = sampling.axis == "share" ? sampling.x : 0.5;
    for (int i = 0; i < length; ++i) {
      room.tokens[i] = room.labels[i] = random.uniform(0, 1) < share ? 1 : 0;
    }
  }
};

const Task& coins() {
  static const bool registered = (register_task(std::make_unique<Coins>()), true);
  return find_task(registered ? "coins-of-a-test" : "");
}

// A decoder of bias alone, for class 0: its error is the share of ones.
Model always_zero(const Task& task, bool variable_length) {
  ModelSpec spec;
  const TaskShape shape = task.shape(4);
  spec.real_nodes = shape.real_nodes;
  spec.data_columns = shape.data_columns;
  spec.output_columns = shape.output_columns;
  spec.vocabulary = shape.vocabulary;
  spec.loss = task.loss();
  spec.width = spec.mlp_width = 8;
  spec.depth = 1;
  spec = resolve(spec);
  Model model{.spec = spec, .parameters = Parameters<float>(spec), .origin = {}};
  model.origin.task = task.name();
  model.origin.length = 4;
  model.origin.variable_length = variable_length;
  model.parameters["decoding.bias"][0] = 1;
  return model;
}

TEST(StatedAxis, ATaskOfTheUsersIsTestedAlongItsOwnAxis) {
  for (const bool variable_length : {false, true}) {
    const Model model = always_zero(coins(), variable_length);
    const AxisValues tests = parse_axis_values("share=0,0.25,1", "--axis");
    const Evaluation evaluation = evaluate({.model = &model,
                                            .task = &coins(),
                                            .axis = &tests.axis,
                                            .values = tests.values,
                                            .samples = 400});
    const auto error_at = [&](double x) {
      return *find_value(evaluation.rows, {.axis = "share", .x = x, .metric = "label_error"});
    };
    EXPECT_EQ(error_at(0), 0);
    EXPECT_NEAR(error_at(0.25), 0.25, 0.05);
    EXPECT_EQ(error_at(1), 1);
    EXPECT_EQ(evaluation.details[0].per_length.size(), variable_length ? 4u : 0u);
  }
}

TEST(StatedAxis, OtherAxesAreRefusedWithThoseThatThereAre) {
  const Model model = always_zero(coins(), false);
  for (const char* text : {"c=1", "height=3"}) {
    const AxisValues tests = parse_axis_values(text, "--axis");
    try {
      evaluate({.model = &model, .task = &coins(), .axis = &tests.axis, .values = tests.values});
      FAIL() << "accepted " << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::data);
      EXPECT_EQ(error.expected(), "one of its own: share");
      EXPECT_EQ(error.hint(), "as --axis share=1,2");
    }
  }
}

TEST(StatedAxis, SeveralAxesStandSideBySide) {
  EXPECT_TRUE(parse_several_axes("", "test-axis").empty());
  const std::vector<AxisValues> axes = parse_several_axes("k=0..2;letters=1", "test-axis");
  ASSERT_EQ(axes.size(), 2u);
  EXPECT_EQ(axes[0].axis.name, "k");
  EXPECT_EQ(axes[0].values, (std::vector<double>{0, 1, 2}));
  EXPECT_EQ(axes[1].axis.name, "letters");
  for (const char* bad : {"k=1;k=2", "k=1;", ";", "k", "k=1;;letters=1"}) {
    EXPECT_THROW(parse_several_axes(bad, "test-axis"), Error) << bad;
  }
}

TEST(StatedAxis, TheTaskSaysHowItIsShown) {
  EXPECT_EQ(axis_named("k").words, "number of hops k");
  EXPECT_TRUE(axis_named("k").whole);
  EXPECT_EQ(axis_named("nobody's").words, "nobody's");
  EXPECT_FALSE(axis_named("nobody's").whole);
}

TEST(StatedAxis, KnownAxesKeepTheirValues) {
  EXPECT_EQ(axis_named("c").plural, "scales");
  EXPECT_THAT(parse_axis_values("length=4..6", "--axis").values, testing::ElementsAre(4, 5, 6));
  EXPECT_THAT(parse_axis_values("x=-1,0", "--axis").values, testing::ElementsAre(-1, 0));
  for (const char* text : {"", "share", "=1", "share=", "share=x", "share=1,1", "c=0"}) {
    EXPECT_THROW(parse_axis_values(text, "--axis"), Error) << text;
  }
}

}  // namespace
}  // namespace posattn
