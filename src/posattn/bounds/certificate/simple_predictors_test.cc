#include <gtest/gtest.h>

#include <vector>

#include "posattn/base/random.h"
#include "posattn/bounds/certificate/certify.h"

namespace posattn::bounds {
namespace {

TEST(SimplePredictors, FitWhatTheyCan) {
  RandomStream random(1, Purpose::test_data, 0, 0);
  std::vector<float> inputs, targets;
  for (int s = 0; s < 1000; ++s) {
    const float a = random.uniform(-1, 1), b = random.uniform(-1, 1);
    inputs.insert(inputs.end(), {a, b});
    targets.insert(targets.end(), {3 * a - b + 0.5F, 7.0F});
  }
  const LabelledSamples data{inputs, targets, 1000};
  const SimplePredictors found = simple_predictors(data, data, 100);
  EXPECT_NEAR(found.linear, 0, 1e-12);
  // Variance 10/3 of the first output, none of the second.
  EXPECT_NEAR(found.constant, 10.0 / 3 / 2 / 1e4, 2e-5);
}

TEST(SimplePredictors, TheMedianWhereItIsBetter) {
  // Clipped at 1: the one far away costs as much as if it were near.
  const std::vector<float> inputs(10, 0.0F), targets = {0, 0, 0, 0, 0, 0, 0, 0, 0, 100};
  const SimplePredictors found = simple_predictors({inputs, targets, 10}, {inputs, targets, 10}, 1);
  EXPECT_NEAR(found.constant, 0.1, 1e-12);
}

}  // namespace
}  // namespace posattn::bounds
