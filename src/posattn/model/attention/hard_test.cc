// Hard retrieval: what it draws in training, and what it reads in tests.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "posattn/kernels/generic/attention.h"
#include "posattn/model/attention/rows.h"
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

// One head of attention without data, from random scores.
class HardRow : public ::testing::Test {
 protected:
  static constexpr int64_t n = 5, size = 3, square = n * n;
  using Numbers = std::vector<double>;

  HardRow() {
    for (Numbers* x : {&scores_, &values_, &target_}) {
      for (double& v : *x) v = random_.uniform(-2, 2);
    }
    for (int i = 0; i < n; ++i) nodes_.push_back(i);
    row_of(Weighting::softmax).in<double>().weights(parts(), {}, soft_.data(), nullptr, scratch_);
  }

  ScoreParts<double> parts() const {
    ScoreParts<double> parts;
    parts.heads = 1;
    parts.keys.nodes = n;
    parts.positions = scores_.data();
    return parts;
  }
  Numbers hard(const StepContext& context) {
    Numbers attention(square), kept(square);
    const AttentionDraws draws{context, 0, &nodes_, n};
    row_of(Weighting::hard)
        .in<double>()
        .weights(parts(), draws, attention.data(), kept.data(), scratch_);
    EXPECT_EQ(kept, soft_);
    return attention;
  }
  Numbers mixed(const Numbers& attention) const {
    Numbers y(n * size);
    generic::mix(values_shape_, attention.data(), values_.data(), y.data());
    return y;
  }
  // The gradients of |y - target|^2 / 2 at the output y: dv, and da.
  std::pair<Numbers, Numbers> gradients(const Numbers& attention, const Numbers& y) {
    Numbers d_y(n * size), dv(n * size), da(square);
    for (size_t i = 0; i < y.size(); ++i) d_y[i] = y[i] - target_[i];
    generic::mix_gradient(values_shape_, attention.data(), values_.data(), d_y.data(), dv.data(),
                          false, da.data(), scratch_);
    return {dv, da};
  }

  const generic::HeadShape values_shape_{.nodes = n, .size = size, .stride = size};
  RandomStream random_{12, Purpose::test_data, 0, 0};
  std::vector<int> nodes_;
  Numbers scores_ = Numbers(square), values_ = Numbers(n * size), target_ = Numbers(n * size);
  Numbers soft_ = Numbers(square), scratch_;
};

// E y = a v, and E dv = a^T dy for a dy that does not depend on the draw.
TEST_F(HardRow, OutputsAndGradientsOfValuesHaveTheSoftmaxAsTheirMean) {
  constexpr int steps = 20000;
  const Numbers no_draw(n * size, 0.5);
  const Numbers soft_y = mixed(soft_), soft_dv = gradients(soft_, no_draw).first;
  Numbers y_mean(n * size), dv_mean(n * size);
  for (uint32_t step = 0; step < steps; ++step) {
    const Numbers drawn = hard({.seed = 5, .step = step, .training = true});
    const Numbers y = mixed(drawn), dv = gradients(drawn, no_draw).first;
    for (size_t i = 0; i < y.size(); ++i) {
      y_mean[i] += y[i] / steps;
      dv_mean[i] += dv[i] / steps;
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t c = 0; c < size; ++c) {
      const int64_t at = i * size + c;
      double y_variance = -soft_y[at] * soft_y[at], dv_variance = 0;
      for (int64_t j = 0; j < n; ++j) {
        const double p = soft_[j * n + i], d_y = 0.5 - target_[j * size + c];
        y_variance += soft_[i * n + j] * values_[j * size + c] * values_[j * size + c];
        dv_variance += p * (1 - p) * d_y * d_y;
      }
      EXPECT_NEAR(y_mean[at], soft_y[at], 5 * std::sqrt(y_variance / steps));
      EXPECT_NEAR(dv_mean[at], soft_dv[at], 5 * std::sqrt(dv_variance / steps));
    }
  }
}

// For a loss that is quadratic in y the mean of the estimator over all draws is the gradient of the
// soft model's loss at its mean output: sum_k a_k (v_k - t) . v_j = (a v - t) . v_j. It is not the
// gradient of the mean loss.
TEST_F(HardRow, EstimatesTheGradientOfASquaredErrorAtTheMeanOutput) {
  const Numbers expected = gradients(soft_, mixed(soft_)).second;
  Numbers mean(square);
  for (int64_t read = 0; read < n; ++read) {  // all rows read the same node: they do not meet
    Numbers one(square);
    for (int64_t i = 0; i < n; ++i) one[i * n + read] = 1;
    const Numbers da = gradients(one, mixed(one)).second;
    for (int64_t i = 0; i < square; ++i) mean[i] += soft_[i / n * n + read] * da[i];
  }
  for (int64_t i = 0; i < square; ++i) EXPECT_NEAR(mean[i], expected[i], 1e-14);
  // And so is that of the scores, which is linear in da.
  Numbers hard_ds = mean, soft_ds = expected;
  row_of(Weighting::hard)
      .in<double>()
      .gradient(parts(), nullptr, soft_.data(), hard_ds.data(), nullptr);
  row_of(Weighting::softmax)
      .in<double>()
      .gradient(parts(), soft_.data(), nullptr, soft_ds.data(), nullptr);
  for (int64_t i = 0; i < square; ++i) EXPECT_NEAR(hard_ds[i], soft_ds[i], 1e-14);
}

TEST_F(HardRow, ReadsTheLargestInTrainingTooWhereScoresAreLarge) {
  for (double& score : scores_) score *= 1000;
  row_of(Weighting::softmax).in<double>().weights(parts(), {}, soft_.data(), nullptr, scratch_);
  const Numbers test = hard({});
  for (uint32_t step = 0; step < 100; ++step) {
    EXPECT_EQ(hard({.seed = 1, .step = step, .training = true}), test);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, Hard, ::testing::Values("data", "positions", "cosine"));

}  // namespace
}  // namespace posattn
