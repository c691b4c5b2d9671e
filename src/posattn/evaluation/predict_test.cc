#include "posattn/evaluation/predict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "posattn/base/error.h"
#include "posattn/base/random.h"
#include "posattn/evaluation/model_for_test.h"
#include "posattn/evaluation/table.h"
#include "posattn/model/blocks/reference_network.h"
#include "posattn/tasks/task.h"

namespace posattn {
namespace {

Model initialised_model(const char* task, int length, bool variable_length) {
  Model model = model_for(task, length, variable_length);
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
    real_nodes_for(model, columns);
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
      expect_reference_outputs(initialised_model(task, 5, false), 5, count);
    }
  }
}

TEST(Predict, VariableLengthModelsTakeShorterRows) {
  for (const char* task : {"sort", "min-sum"}) {
    const Model model = initialised_model(task, 6, true);
    for (int length = 1; length <= 6; ++length) expect_reference_outputs(model, length, 7);
  }
}

TEST(Predict, RefusesOtherRowsAndSaysWhich) {
  const Model fixed = initialised_model("sort", 5, false);
  EXPECT_EQ(refusal_of(fixed, 4), "5 numbers per row");
  EXPECT_EQ(refusal_of(fixed, 6), "5 numbers per row");
  EXPECT_EQ(refusal_of(initialised_model("path", 5, false), 5), "25 numbers per row");
  const Model variable = initialised_model("min-sum", 3, true);
  EXPECT_THAT(refusal_of(variable, 3), testing::HasSubstr("2 to 6 numbers per row"));
  EXPECT_THAT(refusal_of(variable, 8), testing::HasSubstr("2 to 6 numbers per row"));
  EXPECT_THAT(refusal_of(variable, 0), testing::HasSubstr("2 to 6 numbers per row"));
  Model later = initialised_model("min-sum", 3, true);
  later.origin.shortest_length = 2;
  EXPECT_THAT(refusal_of(later, 2), testing::HasSubstr("4 to 6 numbers per row"));
}

// Three classes; two numbers a node where `mixed`.
Model token_model(bool mixed) {
  ModelSpec spec;
  spec.real_nodes = 3;
  spec.data_columns = mixed ? 2 : 0;
  spec.output_columns = 3;
  spec.vocabulary = 5;
  spec.loss = Loss::cross_entropy;
  spec.width = spec.mlp_width = 8;
  spec.depth = 1;
  spec = resolve(spec);
  Model model{.spec = spec, .parameters = Parameters<float>(spec), .origin = {}};
  initialise(model.parameters, 4);
  return model;
}

TEST(Predict, TokensGiveTheReferenceScores) {
  for (const bool mixed : {false, true}) {
    const Model model = token_model(mixed);
    const std::string text =
        mixed ? "4,0,0, -1,0.5,2, 0,0,0\n-1,1,2, 3,0,0, 2,0,0\n" : "4,1,0\n3,3,2\n";
    const Table table = parse_csv(text, "x.csv", 0, row_pattern(model.spec));
    const Batch samples = samples_of(model, table, "x.csv");
    EXPECT_EQ(samples.samples, 2);
    EXPECT_EQ(samples.real_nodes, 3);
    const std::vector<float> scores = predict(model, samples, 2);
    const std::vector<double> inputs(table.values.begin(), table.values.end());
    const std::vector<double> expected = reference_forward(
        model.spec, to_double(model.parameters),
        {.inputs = inputs, .samples = 2, .real_nodes = 3, .tokens = samples.tokens});
    ASSERT_EQ(scores.size(), expected.size());
    for (size_t i = 0; i < scores.size(); ++i) EXPECT_NEAR(scores[i], expected[i], 1e-5) << i;
  }
}

TEST(Predict, RefusesTokensThatTheModelDoesNotHave) {
  const auto refusal = [](bool mixed, const char* text) {
    const Model model = token_model(mixed);
    try {
      samples_of(model, parse_csv(text, "x.csv", 0, row_pattern(model.spec)), "x.csv");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::data);
      return error.problem() + "; " + error.expected();
    }
    return std::string("accepted");
  };
  EXPECT_EQ(refusal(false, "0,1,2\n3,5,4\n"), "x.csv: token 5 in row 2, column 2; 0 to 4");
  EXPECT_EQ(refusal(false, "0,1,-1\n"), "x.csv: token -1 in row 1, column 3; 0 to 4");
  EXPECT_EQ(refusal(true, "-1,0,0, 7,0,0, 0,0,0\n"),
            "x.csv: token 7 in row 1, column 4; 0 to 4, or -1 for a node that holds numbers");
  EXPECT_EQ(refusal(true, "1,2,3\n"), "x.csv: rows of 3 numbers; 9 numbers per row");
}

TEST(Predict, AClassIsDecidedWhereOneScoreIsTheHighest) {
  const float nan = std::nanf("");
  EXPECT_THAT(
      decided_classes(std::vector<float>{1, 3, 2, -1, -2, -3, 2, 0, 2, nan, 1, 2, 1, 2, nan}, 3),
      testing::ElementsAre(1, 0, -1, -1, -1));
}

TEST(Predict, NoRowsGiveNoOutputs) {
  EXPECT_TRUE(predict_rows(initialised_model("sort", 5, false), {}, 0).empty());
}

// A model with pairs of two classes and one number each.
Model pair_model() {
  Model model = model_for("sort", 3);
  apply_preset("structural", model.spec);
  model.spec.pair_columns = 1;
  model.spec.pair_classes = 2;
  model.spec = resolve(model.spec);
  model.parameters = Parameters<float>(model.spec);
  return model;
}

std::string pairs_refused(const Model& model, const Table& table, const std::string& text) {
  try {
    const Table pairs = parse_csv(text, "g.csv", 0, pair_pattern(model.spec));
    samples_of(model, table, &pairs, "x.csv");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::data);
    return error.problem() + "; " + error.expected();
  }
  return "none";
}

TEST(Predict, ARowOfPairsBelongsToEachSample) {
  const Model model = pair_model();
  const Table table = parse_csv("1,2,3\n4,5,6\n", "x.csv");
  const std::string row = "0,.5, 1,2, 1,3, 1,2, 0,0, 0,0, 1,3, 0,0, 0,1\n";
  const Table pairs = parse_csv(row + row, "g.csv", 0, pair_pattern(model.spec));
  const Batch batch = samples_of(model, table, &pairs, "x.csv");
  EXPECT_EQ(batch.pairs.size(), 18u);
  EXPECT_EQ(batch.pairs[10], 2);
  EXPECT_EQ(batch.pair_classes[12], 1);
  EXPECT_EQ(predict(model, batch).size(), 6u);

  using ::testing::HasSubstr;
  EXPECT_EQ(pairs_refused(model, table, row + row), "none");
  EXPECT_THAT(pairs_refused(model, table, row), HasSubstr("1 x 18 numbers of pairs; 2 x 18"));
  EXPECT_THAT(pairs_refused(model, table, "0,1\n0,1\n"), HasSubstr("2 x 2 numbers of pairs"));
  std::string bad = row + row;
  bad[0] = '7';
  EXPECT_THAT(pairs_refused(model, table, bad), HasSubstr("class 7 of the pair of nodes 0 and 0"));
  EXPECT_THAT(pairs_refused(model_for("sort", 3), table, row), HasSubstr("model that reads none"));
  EXPECT_THROW(samples_of(model, table, "x.csv"), Error);
}

}  // namespace
}  // namespace posattn
