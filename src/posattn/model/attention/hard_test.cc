// Hard retrieval: what it draws in training, and what it reads in tests.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "posattn/model/spec/random_spec_test.h"

namespace posattn {
namespace {

using testing::random_parameters;
using testing::RandomBatch;

ModelSpec one_layer(const std::string& kind) {
  ModelSpec spec;
  spec.kinds = kind;
  spec.real_nodes = 4;
  spec.width = spec.mlp_width = 6;
  spec.depth = 1;
  return resolve(spec);
}

class Hard : public ::testing::TestWithParam<const char*> {
 protected:
  const ModelSpec soft_ = one_layer(GetParam());
  const ModelSpec spec_ = one_layer(std::string(GetParam()) + " weighting=hard");
  const Parameters<double> parameters_ = to_double(random_parameters(spec_, 3));
  RandomStream random_{4, Purpose::test_data, 0, 0};
  RandomBatch data_{spec_, 1, 4, random_};

  std::vector<double> attention(const ModelSpec& spec) const {
    Parameters<double> same(spec);
    std::ranges::copy(parameters_.values(), same.values().begin());
    return reference_attention(spec, same, data_.reference());
  }
};

TEST_P(Hard, DrawsByTheSoftmaxInTraining) {
  const std::vector<double> probability = attention(soft_);
  std::vector<double> share(probability.size());
  constexpr int steps = 4000;
  for (int step = 0; step < steps; ++step) {
    data_.context.step = step;
    const std::vector<double> drawn = attention(spec_);
    EXPECT_EQ(std::ranges::count(drawn, 1.0), 2 * 5);  // heads, nodes
    for (size_t i = 0; i < share.size(); ++i) share[i] += drawn[i] / steps;
  }
  for (size_t i = 0; i < share.size(); ++i) {
    const double p = probability[i];
    EXPECT_NEAR(share[i], p, 5 * std::sqrt(p * (1 - p) / steps) + 1e-12) << i;
  }
}

TEST_P(Hard, ReadsTheLargestInTests) {
  data_.context.training = false;
  const std::vector<double> weights = attention(soft_), read = attention(spec_);
  for (size_t row = 0; row < weights.size(); row += 5) {
    const auto best = std::max_element(weights.begin() + row, weights.begin() + row + 5);
    EXPECT_EQ(read[best - weights.begin()], 1);
    EXPECT_EQ(std::count(read.begin() + row, read.begin() + row + 5, 0.0), 4);
  }
}

TEST_P(Hard, DrawsDifferBySeedStepAndSampleAndNotByThreads) {
  RandomStream random(5, Purpose::test_data, 0, 0);
  RandomBatch data(spec_, 40, 4, random);
  const Parameters<float> parameters = random_parameters(spec_, 3);
  const auto outputs = [&](int threads) {
    Network network(spec_, {.threads = threads, .tile = 3});
    std::vector<float> y(40 * 4);
    network.forward(parameters, data.batch(), y);
    return y;
  };
  const std::vector<float> first = outputs(1);
  EXPECT_EQ(outputs(2), first);
  data.context.step = 1;
  EXPECT_NE(outputs(1), first);
  data.context = {.seed = 1, .training = true};
  EXPECT_NE(outputs(1), first);
  data.context = {.first_sample = 40, .training = true};
  EXPECT_NE(outputs(1), first);
}

INSTANTIATE_TEST_SUITE_P(Kinds, Hard, ::testing::Values("data", "positions", "cosine"));

}  // namespace
}  // namespace posattn
