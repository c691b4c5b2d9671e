#include "posattn/evaluation/measure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace posattn {
namespace {

Dataset set_of(TaskShape shape, std::vector<float> targets) {
  Dataset set;
  set.shape = shape;
  set.samples = static_cast<int64_t>(targets.size()) / shape.target_count();
  set.targets.assign(targets.begin(), targets.end());
  return set;
}

TEST(Measure, ErrorsByHand) {
  const Dataset set = set_of({.real_nodes = 2}, {1, 10, -3, 0});
  const std::vector<float> outputs = {1.25f, 8, -3, 0};
  const ErrorSums sums = compare(set, outputs, {});
  EXPECT_EQ(sums.samples, 2);
  EXPECT_DOUBLE_EQ(sums.mse(), (0.0625 + 4) / 4);
  EXPECT_THAT(sums.mse_per_node(), testing::ElementsAre(0.03125, 2.0));
  EXPECT_DOUBLE_EQ(sums.accuracy(), 0.5);  // 8 is further from 10 than 0.1 + 0.1 x 10
}

TEST(Measure, ToleranceIsAbsolutePlusRelative) {
  const Dataset set = set_of({.real_nodes = 1}, {-10, -10, -10, -10, 0, 0});
  const ErrorSums sums =
      compare(set, std::vector<float>{-11.09f, -8.91f, -11.11f, -8.89f, 0.099f, 0.101f}, {});
  EXPECT_EQ(sums.accurate, 3);
}

TEST(Measure, MaskedOutputsStayInTheDenominator) {
  const Dataset set =
      set_of({.real_nodes = 2, .data_columns = 2, .output_columns = 2}, {0, 2, 0, 0});
  const std::vector<uint8_t> mask = {0, 1, 0, 0};
  const ErrorSums sums = compare(set, std::vector<float>{50, 4, 60, 70}, mask);
  EXPECT_DOUBLE_EQ(sums.mse(), 4.0 / 4);
  EXPECT_THAT(sums.mse_per_node(), testing::ElementsAre(2.0, testing::IsNan()));
  EXPECT_EQ(sums.accurate, 0);
  EXPECT_EQ(compare(set, std::vector<float>{50, 2, 60, 70}, mask).accurate, 1);
}

TEST(Measure, NotANumberIsNeverAccurate) {
  const Dataset set = set_of({.real_nodes = 1}, {1, 1});
  const ErrorSums sums = compare(set, std::vector<float>{std::nanf(""), 1}, {});
  EXPECT_EQ(sums.accurate, 1);
  EXPECT_TRUE(std::isnan(sums.mse()));
}

TEST(Measure, SumsOverLengthsWeighEverySampleTheSame) {
  // Two samples of length 1 with error 1, one of length 2 with errors 2 and 4.
  ErrorSums sums;
  sums += compare(set_of({.real_nodes = 1}, {0, 0}), std::vector<float>{1, 1}, {});
  sums += compare(set_of({.real_nodes = 2}, {0, 0}), std::vector<float>{2, 4}, {});
  EXPECT_EQ(sums.samples, 3);
  EXPECT_DOUBLE_EQ(sums.mse(), (1 + 1 + (4 + 16) / 2.0) / 3);
  EXPECT_THAT(sums.mse_per_node(), testing::ElementsAre((1 + 1 + 4) / 3.0, 16.0));
}

TEST(Measure, NoSamplesGiveNoMean) {
  EXPECT_TRUE(std::isnan(ErrorSums{}.mse()));
  EXPECT_TRUE(std::isnan(ErrorSums{}.accuracy()));
}

}  // namespace
}  // namespace posattn
