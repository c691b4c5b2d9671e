// Random features of unit queries and keys, and attention made of them with and without matrices.
#include "posattn/model/attention/kernel.h"

#include <gmock/gmock.h>

#include <cmath>
#include <numeric>

#include "posattn/model/spec/random_spec_test.h"
#include "posattn/model/spec/tensor_names.h"

namespace posattn {
namespace {

using testing::random_parameters;
using testing::RandomBatch;

ModelSpec kernel_model(const std::string& kind, int length, bool causal, int scratch) {
  ModelSpec spec;
  spec.kinds = kind;
  spec.real_nodes = length;
  spec.scratch_nodes = scratch;
  spec.width = spec.mlp_width = 6;
  spec.depth = 1;
  spec.causal = causal;
  return resolve(spec);
}

// Over many draws of m features: the mean of phi(x) . phi(y) and its relative deviation, where x
// and y are given to the row or used as they are.
struct Estimate {
  double mean, deviation;
};

Estimate estimate(const std::vector<double>& x, const std::vector<double>& y, int m, bool unit,
                  int draws) {
  const auto size = static_cast<int64_t>(x.size());
  AttentionBlock block{.data = DataTerm{.key_size = static_cast<int>(size)}, .features = m};
  std::vector<double> omega(m * size), both, kept(2), phi(2 * m);
  double sum = 0, squares = 0;
  for (int draw = 0; draw < draws; ++draw) {
    RandomStream random(1, Purpose::test_data, 0, draw);
    for (double& w : omega) w = random.normal();
    both = x;
    both.insert(both.end(), y.begin(), y.end());
    if (unit) {
      const ScoreParts<double> parts{.heads = 1, .block = &block, .tensor = omega.data()};
      row_of(Weighting::kernel)
          .in<double>()
          .features(parts, 1, both.data(), kept.data(), phi.data());
    } else {
      for (int side = 0; side < 2; ++side) {
        const double* v = &both[side * size];
        const double half = std::inner_product(v, v + size, v, 0.0) / 2;
        for (int f = 0; f < m; ++f) {
          phi[side * m + f] =
              std::exp(std::inner_product(v, v + size, &omega[f * size], 0.0) - half) /
              std::sqrt(m);
        }
      }
    }
    const double product = std::inner_product(phi.begin(), phi.begin() + m, phi.begin() + m, 0.0);
    sum += product / draws;
    squares += product * product / draws;
  }
  return {sum, std::sqrt(squares - sum * sum)};
}

std::vector<double> direction(uint32_t which, double length) {
  RandomStream random(2, Purpose::test_data, 0, which);
  std::vector<double> x(16);
  for (double& value : x) value = random.normal();
  const double norm = std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0));
  for (double& value : x) value *= length / norm;
  return x;
}

TEST(KernelFeatures, EstimateTheExponentialOfCosines) {
  constexpr int draws = 4096, m = 64;
  for (uint32_t pair = 0; pair < 3; ++pair) {
    const std::vector<double> x = direction(2 * pair, 1), y = direction(2 * pair + 1, 1);
    const double cosine = std::inner_product(x.begin(), x.end(), y.begin(), 0.0);
    // Var = exp(2 x . y) (exp(|x + y|^2) - 1) / m
    const double deviation = std::exp(cosine) * std::sqrt((std::exp(2 + 2 * cosine) - 1) / m);
    const Estimate found = estimate(x, y, m, true, draws);
    EXPECT_NEAR(found.mean, std::exp(cosine), 5 * deviation / std::sqrt(draws));
    EXPECT_NEAR(found.deviation, deviation, 0.25 * deviation);
    // The size of what the row is given does not matter.
    std::vector<double> large = x;
    for (double& value : large) value *= 100;
    EXPECT_NEAR(estimate(large, y, m, true, draws).mean, found.mean, 1e-12);
  }
}

// The instability of features of vectors as they are: their noise grows as exp(|x + y|^2 / 2).
TEST(KernelFeatures, AreUselessForVectorsThatAreNotUnit) {
  const auto relative = [](double length, bool unit) {
    const std::vector<double> x = direction(0, length), y = direction(1, length);
    const double product = std::inner_product(x.begin(), x.end(), y.begin(), 0.0);
    const double truth = std::exp(unit ? product / (length * length) : product);
    const Estimate found = estimate(x, y, 64, unit, 400);
    return std::hypot(found.deviation, found.mean - truth) / truth;
  };
  const double at_1 = relative(1, false);
  EXPECT_LT(at_1, 0.5);
  EXPECT_NEAR(relative(1, true), at_1, 1e-9);
  EXPECT_GT(relative(2, false), 3 * at_1);
  for (const double length : {2.0, 3.0, 30.0}) EXPECT_NEAR(relative(length, true), at_1, 1e-9);
  // At 3 the mean of 64 features misses nearly all of what the expectation is made of.
  EXPECT_GT(relative(3, false), 0.8);
}

TEST(KernelFeatures, AreDrawnOnceAndNotTrained) {
  const ModelSpec spec = kernel_model("kernel features=200", 8, false, 1);
  Parameters<float> parameters(spec), other(spec);
  initialise(parameters, 1);
  initialise(other, 2);
  const auto& layout = parameters.layout();
  const TensorInfo& tensor = layout.at(names::of_layer(0, names::features));
  EXPECT_FALSE(tensor.trained);
  const auto omega = parameters.slice(tensor);
  double sum = 0, squares = 0;
  for (const float w : omega) sum += w, squares += w * w;
  const auto count = static_cast<double>(omega.size());
  EXPECT_NEAR(sum / count, 0, 5 / std::sqrt(count));
  EXPECT_NEAR(squares / count, 1, 5 * std::sqrt(2 / count));
  EXPECT_FALSE(std::ranges::equal(omega, other.slice(tensor)));
}

// Zero vectors, which the first layer's scratch node has: exp(0) with every key.
TEST(KernelFeatures, KnowZeroVectors) {
  const std::vector<double> zero(16, 0.0);
  const Estimate found = estimate(zero, direction(0, 3), 64, true, 4096);
  EXPECT_NEAR(found.mean, 1, 5 * std::sqrt((std::exp(1.0) - 1) / 64 / 4096));
}

struct LongCase {
  const char* kind;
  bool causal;
  int scratch;
};

// Without matrices as with them, to rounding.
TEST(LongKernel, AgreesWithTheMatrices) {
  const LongCase cases[] = {{"kernel features=2", false, 1},
                            {"kernel features=3", true, 2},
                            {"kernel features=2 score-bias=alibi", true, 0},
                            {"kernel features=2 score-bias=kerple", false, 2},
                            {"kernel features=2 score-bias=buckets", true, 1},
                            {"kernel features=2 score-bias=none", false, 1}};
  for (const LongCase& c : cases) {
    for (const int length : {180, 257}) {
      SCOPED_TRACE(std::string(c.kind) + ", n = " + std::to_string(length));
      const ModelSpec spec = kernel_model(c.kind, length, c.causal, c.scratch);
      Parameters<float> parameters = random_parameters(spec, 6);
      for (const TensorInfo& t : parameters.layout().tensors()) {
        if (!t.name.ends_with(names::scratch_scores)) continue;
        for (float& u : parameters.slice(t)) u *= 40;  // rows of their own scale
      }
      const Plan plan = plan_of(spec);
      const LinearMaps<float> maps(plan);
      const NodeContext<float> nodes(spec, parameters, maps, length);
      ASSERT_NE(long_kernel(plan.layers[0].attention, nodes), nullptr);
      RandomStream random(7, Purpose::test_data, 0, 0);
      const RandomBatch data(spec, 3, length, random);
      const std::vector<double> expected =
          reference_forward(spec, to_double(parameters), data.reference());
      double largest = 0;
      for (const double y : expected) largest = std::max(largest, std::abs(y));
      for (const Path path : {Path::automatic, Path::plain}) {
        std::vector<float> outputs(expected.size());
        Network(spec, {.path = path}).forward(parameters, data.batch(), outputs);
        for (size_t i = 0; i < outputs.size(); ++i) {
          ASSERT_NEAR(outputs[i], expected[i], 2e-6 * largest)
              << static_cast<int>(path) << " " << i;
        }
      }
    }
  }
}

TEST(LongKernel, LeavesWhatItCannotDoToTheMatrices) {
  const auto exists = [](const char* kind, int length, float score) {
    const ModelSpec spec = kernel_model(kind, length, false, 0);
    Parameters<float> parameters = random_parameters(spec, 6);
    for (const TensorInfo& t : parameters.layout().tensors()) {
      if (t.name.ends_with(names::relative_scores)) parameters.slice(t)[0] = score;
    }
    const Plan plan = plan_of(spec);
    const LinearMaps<float> maps(plan);
    const NodeContext<float> nodes(spec, parameters, maps, length);
    return long_kernel(plan.layers[0].attention, nodes) != nullptr;
  };
  EXPECT_TRUE(exists("kernel features=2", 200, 1));
  EXPECT_FALSE(exists("kernel features=2", 8, 1));                    // too short to pay
  EXPECT_FALSE(exists("kernel features=2 score-bias=fire", 200, 1));  // not by distance alone
  EXPECT_FALSE(exists("kernel features=2", 200, 60));  // other rows would drown in its rounding
}

}  // namespace
}  // namespace posattn
