#include "posattn/evaluation/predict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "posattn/base/error.h"
#include "posattn/base/random.h"
#include "posattn/model/reference_network.h"
#include "posattn/tasks/task.h"

namespace posattn {
namespace {

Model model_for(const char* task, int length, bool variable_length) {
  const TaskShape shape = find_task(task).shape(length);
  ModelSpec spec;
  spec.real_nodes = shape.real_nodes;
  spec.data_columns = shape.data_columns;
  spec.output_columns = shape.output_columns;
  spec.width = 8;
  spec.mlp_width = 8;
  spec.depth = 2;
  spec = resolve(spec);
  Model model{.spec = spec,
              .parameters = Parameters<float>(spec),
              .origin = {.task = task,
                         .length = length,
                         .variable_length = variable_length,
                         .range = 2,
                         .integers = false,
                         .notes = {}}};
  initialise(model.parameters, 4);
  return model;
}

void expect_reference_outputs(const Model& model, int length, int64_t count) {
  const TaskShape shape = find_task(model.origin.task).shape(length);
  RandomStream random(8, Purpose::test_data, 0, 0);
  std::vector<float> rows(count * shape.input_count());
  for (float& value : rows) value = random.uniform(-2, 2);
  const std::vector<float> outputs = predict_rows(model, rows, count, 2);
  const std::vector<double> inputs(rows.begin(), rows.end());
  const std::vector<double> expected =
      reference_forward(model.spec, to_double(model.parameters),
                        {.inputs = inputs, .samples = count, .real_nodes = shape.real_nodes});
  ASSERT_EQ(outputs.size(), expected.size());
  double largest = 0;
  for (const double value : expected) largest = std::max(largest, std::abs(value));
  for (size_t i = 0; i < outputs.size(); ++i) {
    EXPECT_NEAR(outputs[i], expected[i], 1e-5 * largest) << model.origin.task << ' ' << i;
  }
}

std::string refusal_of(const Model& model, int64_t columns) {
  try {
    output_columns_for(model, columns);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::data);
    return error.expected();
  }
  ADD_FAILURE() << "accepted rows of " << columns;
  return {};
}

TEST(Predict, RowsGiveTheReferenceOutputs) {
  for (const char* task : {"sort", "min-sum", "path"}) {
    for (const int64_t count : {1, 3, 100}) {
      expect_reference_outputs(model_for(task, 5, false), 5, count);
    }
  }
}

TEST(Predict, VariableLengthModelsTakeShorterRows) {
  for (const char* task : {"sort", "min-sum"}) {
    const Model model = model_for(task, 6, true);
    for (int length = 1; length <= 6; ++length) expect_reference_outputs(model, length, 7);
  }
}

TEST(Predict, RefusesOtherRowsAndSaysWhich) {
  const Model fixed = model_for("sort", 5, false);
  EXPECT_EQ(refusal_of(fixed, 4), "5 numbers per row");
  EXPECT_EQ(refusal_of(fixed, 6), "5 numbers per row");
  EXPECT_EQ(refusal_of(model_for("path", 5, false), 5), "25 numbers per row");
  const Model variable = model_for("min-sum", 3, true);
  EXPECT_THAT(refusal_of(variable, 3), testing::HasSubstr("2 to 6 numbers per row"));
  EXPECT_THAT(refusal_of(variable, 8), testing::HasSubstr("2 to 6 numbers per row"));
  EXPECT_THAT(refusal_of(variable, 0), testing::HasSubstr("2 to 6 numbers per row"));
}

TEST(Predict, NoRowsGiveNoOutputs) {
  EXPECT_TRUE(predict_rows(model_for("sort", 5, false), {}, 0).empty());
}

}  // namespace
}  // namespace posattn
