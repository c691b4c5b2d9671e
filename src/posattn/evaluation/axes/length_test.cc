#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "posattn/base/error.h"
#include "posattn/evaluation/evaluate.h"
#include "posattn/model/blocks/reference_network.h"

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

// Relative attention, attention from data with RoPE, sinusoidal positions: the same weights in a
// longer or shorter network.
TEST(LengthAxis, SomeModelsWorkAtOtherLengths) {
  for (const char* preset : {"relative", "m4", "standard"}) {
    SCOPED_TRACE(preset);
    Model model = sorting_model(6, false);
    apply_preset(preset, model.spec);
    model.spec.encoding = Encoding::sinusoidal;
    model.spec.encoding_size = 0;
    model.spec = resolve(model.spec);
    model.parameters = Parameters<float>(model.spec);
    initialise(model.parameters, 5);
    const std::vector<Measurement> rows = rows_at(model, "length", {2, 6, 20});
    EXPECT_THAT(tested_values(rows, "length"), testing::ElementsAre(2, 6, 20));
    for (const int length : {2, 20}) {
      const Dataset set = make_dataset({.task = &find_task("sort"),
                                        .length = length,
                                        .samples = 30,
                                        .range = test_range(2, 1, false),
                                        .purpose = Purpose::evaluation_data});
      const ModelSpec spec = *at_length(model.spec, length);
      EXPECT_EQ(ParameterLayout(spec).buffer_size(), model.parameters.layout().buffer_size());
      const std::vector<double> inputs(set.inputs.begin(), set.inputs.end());
      const std::vector<double> outputs =
          reference_forward(spec, to_double(model.parameters),
                            {.inputs = inputs, .samples = 30, .real_nodes = length});
      double squared = 0;
      for (size_t i = 0; i < outputs.size(); ++i) {
        squared += (outputs[i] - set.targets[i]) * (outputs[i] - set.targets[i]);
      }
      const double mse = squared / static_cast<double>(outputs.size());
      EXPECT_NEAR(*find_value(rows, {.axis = "length", .x = double(length), .metric = "mse"}), mse,
                  1e-5 * mse);
    }
  }
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
