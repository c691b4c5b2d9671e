#include "posattn/bounds/collapsed_network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "posattn/base/error.h"
#include "posattn/model/spec/perturbed_specs_test.h"
#include "posattn/model/spec/random_spec_test.h"

namespace posattn::bounds {
namespace {

using posattn::testing::RandomBatch;

void expect_same_function(const ModelSpec& spec, uint64_t seed, RandomStream& random) {
  SCOPED_TRACE(to_json(spec));
  const Parameters<double> parameters = to_double(posattn::testing::random_parameters(spec, seed));
  const RandomBatch batch(spec, 3, spec.real_nodes, random);
  const std::vector<double> expected = reference_forward(spec, parameters, batch.reference());
  const std::vector<double> found = forward(collapse(spec, parameters), batch.inputs64, 3);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t k = 0; k < found.size(); ++k) {
    EXPECT_NEAR(found[k], expected[k], 1e-12 * (1 + std::abs(expected[k])));
  }
}

TEST(CollapsedNetwork, IsTheSameFunction) {
  RandomStream random(1, Purpose::test_data, 0, 0);
  int positional = 0, standard = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    ModelSpec spec = posattn::testing::random_spec(random);
    spec.data_columns = spec.output_columns = 1;
    spec.mlp_depth = 2;
    spec.reach = 0;
    spec = resolve(spec);
    if (spec.weighting != Weighting::softmax) continue;
    if (spec.reads_pairs() || spec.two_streams()) continue;
    const bool from_positions = spec.attention == AttentionSource::positions;
    if (from_positions ? spec.positions_in_input
                       : spec.rotation == Rotation::rope || !spec.positions_in_input) {
      continue;
    }
    ++(from_positions ? positional : standard);
    expect_same_function(spec, seed, random);
  }
  EXPECT_GT(positional, 20);
  EXPECT_GT(standard, 20);
}

// Whatever it takes, it computes; everything else it refuses with a reason.
TEST(CollapsedNetwork, RefusesWhatItDoesNotKnow) {
  RandomStream random(2, Purpose::test_data, 0, 0);
  int refused = 0;
  for (const char* preset : {"positional", "standard"}) {
    ModelSpec base;
    apply_preset(preset, base);
    base.real_nodes = 3;
    base.width = base.mlp_width = 4;
    base.depth = 2;
    for (const auto& [field, spec] : posattn::testing::perturbed_specs(resolve(base))) {
      try {
        expect_same_function(spec, 3, random);
      } catch (const Error& error) {
        ++refused;
        EXPECT_EQ(error.code(), ExitCode::configuration) << field;
        EXPECT_THAT(error.problem(), ::testing::StartsWith("this model ")) << field;
      }
    }
  }
  EXPECT_GT(refused, 20);
}

}  // namespace
}  // namespace posattn::bounds
