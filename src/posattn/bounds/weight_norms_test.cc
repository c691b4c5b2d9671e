#include "posattn/bounds/weight_norms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "posattn/base/random.h"
#include "posattn/bounds/golden_network_test.h"

namespace posattn::bounds {
namespace {

TEST(WeightNorms, OfEveryMatrix) {
  const ModelSpec spec = testing::spec_of({.architecture = "standard", .depth = 2, .width = 6});
  Parameters<double> parameters = testing::golden_parameters(spec);
  // Head 1 of layer 1: queries twice the first unit vector, keys three times the second one.
  const auto query_key = parameters[names::of_layer(1, names::weight(names::query_key))];
  for (double& w : query_key.subspan(2 * 6 * 6)) w = 0;
  query_key[(2 * 6 + 0) * 6 + 0] = 2;
  query_key[(3 * 6 + 0) * 6 + 1] = 3;
  const std::vector<LayerWeightNorms> found = weight_norms(spec, parameters, {});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_NEAR(found[1].at("QK.1").spectral, 6 / std::sqrt(6.0), 1e-12);
  EXPECT_NEAR(found[1].at("QK.1").frobenius, 6 / std::sqrt(6.0), 1e-12);
  EXPECT_EQ(found[1].matrices.size(), 4u + 2 * 3);
  const double rows = std::hypot(found[0].at("V.0").frobenius, found[0].at("V.1").frobenius);
  EXPECT_NEAR(found[0].at("V").frobenius, rows, 1e-12);
  EXPECT_LE(found[0].at("O.0").spectral, found[0].at("O").spectral + 1e-12);
  EXPECT_NEAR(found[0].mlp_lipschitz, found[0].at("W1").spectral * found[0].at("W2").spectral,
              1e-12);
  EXPECT_FALSE(found[0].mlp_jacobian);
  EXPECT_THROW(found[0].at("W3"), std::out_of_range);
  EXPECT_EQ(weight_norms(testing::spec_of({.architecture = "positional-direct", .width = 6}),
                         Parameters<double>(
                             testing::spec_of({.architecture = "positional-direct", .width = 6})),
                         {})[0]
                .matrices.size(),
            4u + 2 * 2);  // no queries and keys
}

// Never above the product of norms, and larger the more data are looked at.
TEST(WeightNorms, JacobianOnData) {
  const ModelSpec spec = testing::spec_of({.depth = 3, .width = 8, .length = 4});
  const Parameters<double> parameters = testing::golden_parameters(spec);
  RandomStream random(1, Purpose::test_data, 0, 0);
  std::vector<double> x(4 * 20);
  for (double& value : x) value = random.uniform(-2, 2);
  double fewer = 0;
  for (const size_t samples : {1, 5, 20}) {
    const auto found =
        weight_norms(spec, parameters, std::span<const double>(x).first(4 * samples));
    for (const LayerWeightNorms& layer : found) {
      EXPECT_GT(*layer.mlp_jacobian, 0);
      EXPECT_LE(*layer.mlp_jacobian, layer.mlp_lipschitz);
    }
    EXPECT_GE(*found[0].mlp_jacobian, fewer);
    fewer = *found[0].mlp_jacobian;
  }
}

// All units on: the Jacobian is W2 W1.
TEST(WeightNorms, JacobianOfALinearMlp) {
  const ModelSpec spec = testing::spec_of({.depth = 1, .width = 4, .length = 2});
  Parameters<double> parameters = testing::golden_parameters(spec);
  for (double& b : parameters[names::of_layer(0, names::bias(names::mlp_map(0)))]) b = 1000;
  const auto first = parameters[names::of_layer(0, names::weight(names::mlp_map(0)))],
             second = parameters[names::of_layer(0, names::weight(names::mlp_map(1)))];
  Matrix w1(4, 8), w2(4, 4);
  std::ranges::copy(first, w1.values.begin());
  std::ranges::copy(second, w2.values.begin());
  const std::vector<double> x = {0.5, -1};
  EXPECT_NEAR(*weight_norms(spec, parameters, x)[0].mlp_jacobian, spectral_norm(product(w2, w1)),
              1e-12);
}

}  // namespace
}  // namespace posattn::bounds
