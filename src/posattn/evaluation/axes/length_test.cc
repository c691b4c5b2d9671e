#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "posattn/base/error.h"
#include "posattn/evaluation/evaluate.h"

namespace posattn {
namespace {

Model sorting_model(int length, bool variable_length) {
  ModelSpec spec;
  spec.real_nodes = length;
  spec.width = spec.mlp_width = 8;
  spec.depth = 2;
  spec = resolve(spec);
  Model model{.spec = spec,
              .parameters = Parameters<float>(spec),
              .origin = {.task = "sort",
                         .length = length,
                         .variable_length = variable_length,
                         .range = 2,
                         .integers = false,
                         .notes = {}}};
  initialise(model.parameters, 5);
  return model;
}

std::vector<Measurement> rows_at(const Model& model, const char* axis, std::vector<double> values) {
  return evaluate({.model = &model,
                   .task = &find_task("sort"),
                   .axis = &find_evaluation_axis(axis),
                   .values = std::move(values),
                   .samples = 30})
      .rows;
}

TEST(LengthAxis, ItsOwnLengthIsTheTrainingRange) {
  const Model model = sorting_model(6, false);
  const std::vector<Measurement> rows = rows_at(model, "length", {6});
  for (const char* metric : {"mse", "accuracy"}) {
    EXPECT_EQ(find_value(rows, {.axis = "length", .x = 6, .metric = metric}),
              find_value(rows_at(model, "c", {1}), {.axis = "c", .x = 1, .metric = metric}));
  }
}

TEST(LengthAxis, RefusesWhatTheModelDoesNotKnow) {
  const Model model = sorting_model(6, false);
  for (const double length : {1, 5, 7, 64}) {
    try {
      rows_at(model, "length", {length});
      FAIL() << "accepted " << length;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::data);
      EXPECT_THAT(error.expected(), testing::HasSubstr("length 6 alone"));
    }
  }
  EXPECT_TRUE(evaluates_at_length(model.spec, 6));
  EXPECT_FALSE(evaluates_at_length(model.spec, 5));
}

TEST(LengthAxis, AModelTrainedOnSeveralLengthsIsTestedAtEach) {
  const Model model = sorting_model(6, true);
  const std::vector<Measurement> rows = rows_at(model, "length", {1, 4, 6});
  EXPECT_THAT(tested_values(rows, "length"), testing::ElementsAre(1, 4, 6));
  EXPECT_THROW(rows_at(model, "length", {7}), Error);
}

TEST(EvaluationAxes, ReadTheirValues) {
  EXPECT_THAT(find_evaluation_axis("length").parse("4..6,16", "--lengths"),
              testing::ElementsAre(4, 5, 6, 16));
  EXPECT_THAT(find_evaluation_axis("c").parse("0.5,3", "--scales"), testing::ElementsAre(0.5, 3));
  for (const char* text : {"0", "2.5", "4,4", "1048577", "x"}) {
    EXPECT_THROW(find_evaluation_axis("length").parse(text, "--lengths"), Error) << text;
  }
  EXPECT_THROW(find_evaluation_axis("scale"), Error);
}

}  // namespace
}  // namespace posattn
