#include "posattn/evaluation/measure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace posattn {
namespace {

struct Compared {
  MetricSum squared, accurate;
  NodeErrors nodes;
  double mse() const { return squared.mean(); }
  Compared& operator+=(const Compared& other) {
    squared += other.squared;
    accurate += other.accurate;
    nodes += other.nodes;
    return *this;
  }
};

Compared compare(TaskShape shape, const std::vector<float>& targets,
                 const std::vector<float>& outputs, const std::vector<uint8_t>& mask = {}) {
  const Predictions predictions{
      .shape = shape,
      .samples = static_cast<int64_t>(targets.size()) / shape.target_count(),
      .outputs = outputs,
      .targets = targets,
      .labels = {},
      .mask = mask};
  return {find_metric("mse").measure(predictions), find_metric("accuracy").measure(predictions),
          node_errors(predictions)};
}

TEST(Measure, ErrorsByHand) {
  const Compared found = compare({.real_nodes = 2}, {1, 10, -3, 0}, {1.25f, 8, -3, 0});
  EXPECT_EQ(found.squared.count, 2);
  EXPECT_DOUBLE_EQ(found.mse(), (0.0625 + 4) / 4);
  EXPECT_THAT(found.nodes.means(), testing::ElementsAre(0.03125, 2.0));
  EXPECT_DOUBLE_EQ(found.accurate.mean(), 0.5);  // 8 is further from 10 than 0.1 + 0.1 x 10
}

// A metric may be relative to the sample.
TEST(Measure, MetricsSeeTheSamples) {
  const Dataset set = make_dataset({.task = &find_task("neighbour-min"),
                                    .length = 5,
                                    .samples = 30,
                                    .range = training_range(2, false)});
  const Predictions seen = predictions_of(set, set.targets, {});
  EXPECT_EQ(seen.length, 5);
  ASSERT_EQ(seen.inputs.size(), 150u);
  ASSERT_EQ(seen.pair_classes.size(), 750u);
  for (int at = 0; at < 150; ++at) {  // least among neighbours and itself, found again
    float least = seen.inputs[at];
    for (int j = 0; j < 5; ++j) {
      if (seen.pair_classes[at * 5 + j] == 1) least = std::min(least, seen.inputs[at / 5 * 5 + j]);
    }
    EXPECT_EQ(seen.outputs[at], least);
  }
  const Dataset word = make_dataset({.task = &find_task("k-hop"), .length = 6, .samples = 4});
  const std::vector<float> scores(word.samples * word.shape.target_count());
  EXPECT_EQ(predictions_of(word, scores, {}).tokens.data(), word.tokens.data());
  const Batch last = batch_of(word, 3, 1);
  EXPECT_EQ(last.samples, 1);
  EXPECT_EQ(last.tokens.data(), word.tokens.data() + 18);
}

TEST(Measure, OnlyNodesThatAreReadHaveErrors) {
  const Compared found =
      compare({.real_nodes = 2, .read_nodes = 1}, {1, 10, -3, 0}, {1.25f, 8, -3, 0});
  EXPECT_THAT(found.nodes.means(), testing::ElementsAre(0.03125));
}

TEST(Measure, ToleranceIsAbsolutePlusRelative) {
  const Compared found = compare({.real_nodes = 1}, {-10, -10, -10, -10, 0, 0},
                                 {-11.09f, -8.91f, -11.11f, -8.89f, 0.099f, 0.101f});
  EXPECT_EQ(found.accurate.sum, 3);
}

TEST(Measure, MaskedOutputsStayInTheDenominator) {
  const TaskShape shape{.real_nodes = 2, .data_columns = 2, .output_columns = 2};
  const std::vector<uint8_t> mask = {0, 1, 0, 0};
  const Compared found = compare(shape, {0, 2, 0, 0}, {50, 4, 60, 70}, mask);
  EXPECT_DOUBLE_EQ(found.mse(), 4.0 / 4);
  EXPECT_THAT(found.nodes.means(), testing::ElementsAre(2.0, testing::IsNan()));
  EXPECT_EQ(found.accurate.sum, 0);
  EXPECT_EQ(compare(shape, {0, 2, 0, 0}, {50, 2, 60, 70}, mask).accurate.sum, 1);
}

TEST(Measure, NotANumberIsNeverAccurate) {
  const Compared found = compare({.real_nodes = 1}, {1, 1}, {std::nanf(""), 1});
  EXPECT_EQ(found.accurate.sum, 1);
  EXPECT_TRUE(std::isnan(found.mse()));
}

TEST(Measure, SumsOverLengthsWeighEverySampleTheSame) {
  // Two samples of length 1 with error 1, one of length 2 with errors 2 and 4.
  Compared found = compare({.real_nodes = 1}, {0, 0}, {1, 1});
  found += compare({.real_nodes = 2}, {0, 0}, {2, 4});
  EXPECT_EQ(found.squared.count, 3);
  EXPECT_DOUBLE_EQ(found.mse(), (1 + 1 + (4 + 16) / 2.0) / 3);
  EXPECT_THAT(found.nodes.means(), testing::ElementsAre((1 + 1 + 4) / 3.0, 16.0));
}

TEST(Measure, NoSamplesGiveNoMean) { EXPECT_TRUE(std::isnan(MetricSum{}.mean())); }

}  // namespace
}  // namespace posattn
