#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "posattn/base/error.h"
#include "posattn/model/network.h"
#include "posattn/model/random_spec_test.h"
#include "posattn/report/steps/walk.h"

namespace posattn {
namespace {

using ::testing::HasSubstr;

Model small_model(const char* preset, const char* task) {
  ModelSpec spec;
  spec.real_nodes = 3;
  spec.width = 4;
  spec.mlp_width = 4;
  spec.depth = 2;
  apply_preset(preset, spec);
  spec = resolve(spec);
  Model model{spec, testing::random_parameters(spec, 3), {}};
  model.origin.task = task;
  model.origin.length = 3;
  return model;
}

TEST(NetworkWalk, AttentionRowsComeStrongestFirst) {
  for (const char* preset : {"positional", "standard"}) {
    const Model model = small_model(preset, "cumulative-sum");
    const std::vector<float> row = {1, 2, 3};
    const Batch sample{.inputs = row, .samples = 1, .real_nodes = 3};
    const std::vector<float> attention = Network(model.spec).attention(model.parameters, sample);
    const Walk walk = network_walk(model, sample);
    ASSERT_EQ(walk.steps.size(), 3u);
    const int n = walk.nodes;
    for (int l = 0; l < 2; ++l) {
      ASSERT_EQ(walk.steps[l + 1].readings.size(), 2u);
      for (int h = 0; h < 2; ++h) {
        for (int i = 0; i < n; ++i) {
          double last = 1, sum = 0;
          for (const auto& [j, weight] : walk.steps[l + 1].readings[h].reads[i]) {
            EXPECT_FLOAT_EQ(weight, attention[((l * 2 + h) * n + i) * n + j]);
            EXPECT_LE(weight, last);
            last = weight;
            sum += weight;
          }
          EXPECT_NEAR(sum, 1, 0.005 * n);
        }
      }
    }
  }
}

TEST(NetworkWalk, ColumnsAreInputOutputAnswerAndState) {
  const Model model = small_model("positional", "cumulative-sum");
  const std::vector<float> row = {1, 2, 3};
  const Batch sample{.inputs = row, .samples = 1, .real_nodes = 3};
  const Walk walk = network_walk(model, sample);
  std::vector<std::string> names;
  for (const WalkColumn& column : walk.columns) names.push_back(column.name);
  EXPECT_THAT(names, ::testing::ElementsAre("input", "output", "answer", "x0", "x1", "x2", "x3"));
  EXPECT_EQ(walk.nodes, 4);
  EXPECT_EQ(walk.scratch_nodes, 1);
  EXPECT_EQ(walk.columns[1].first_step, 2);
  const std::vector<double>& end = walk.steps[2].values;
  EXPECT_EQ(end[2 * names.size() + 0], 3);
  EXPECT_EQ(end[2 * names.size() + 2], 6);
  EXPECT_THAT(walk.facts[2], HasSubstr("answer: 1, 3, 6"));
  // Without a task there is no answer.
  EXPECT_EQ(network_walk(small_model("positional", ""), sample).columns.size(), names.size() - 1);
}

TEST(NetworkWalk, TokensInAndClassesOut) {
  ModelSpec spec;
  spec.real_nodes = 3;
  spec.width = 4;
  spec.mlp_width = 4;
  spec.depth = 1;
  spec.data_columns = 0;
  spec.vocabulary = 5;
  spec.output_columns = 2;
  spec.loss = Loss::cross_entropy;
  spec = resolve(spec);
  const Model model{spec, testing::random_parameters(spec, 3), {}};
  const std::vector<int32_t> tokens = {4, 0, 2};
  const Walk walk = network_walk(model, {.samples = 1, .real_nodes = 3, .tokens = tokens});
  std::vector<std::string> names;
  for (size_t c = 0; c < 4; ++c) names.push_back(walk.columns[c].name);
  EXPECT_THAT(names, ::testing::ElementsAre("token", "class", "score 0", "score 1"));
  const size_t width = walk.columns.size();
  for (size_t i = 0; i < 3; ++i) {
    const double* row = &walk.steps[1].values[i * width];
    EXPECT_EQ(row[0], tokens[i]);
    EXPECT_EQ(row[1], row[3] > row[2] ? 1 : 0);
  }
}

TEST(NetworkWalk, RefusesARowOfAnotherLength) {
  const std::vector<float> row = {1, 2, 3, 4};
  EXPECT_THROW(network_walk(small_model("positional", "cumulative-sum"),
                            {.inputs = row, .samples = 1, .real_nodes = 3}),
               Error);
}

}  // namespace
}  // namespace posattn
