#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "posattn/base/error.h"
#include "posattn/model/blocks/reference_network.h"
#include "posattn/model/hooks.h"
#include "posattn/model/spec/random_spec_test.h"
#include "posattn/model/spec/tensor_names.h"

namespace posattn {
namespace {

TEST(Activations, OutputsAreTheReferences) {
  for (int trial = 0; trial < 12; ++trial) {
    RandomStream random(5, Purpose::test_data, 1, trial);
    const ModelSpec spec =
        trial % 2 == 0 ? testing::random_spec(random) : testing::random_open_spec(random);
    SCOPED_TRACE(to_json(spec));
    const Parameters<float> parameters = testing::random_parameters(spec, trial);
    const int real_nodes = 1 + static_cast<int>(random.below(spec.real_nodes));
    const testing::RandomBatch data(spec, 1, real_nodes, random);
    const Activations found = activations_of(spec, parameters, data.batch());
    const std::vector<double> expected =
        reference_forward(spec, to_double(parameters), data.reference());
    double largest = 1;
    for (const double x : expected) largest = std::max(largest, std::abs(x));
    ASSERT_EQ(found.outputs.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(found.outputs[i], expected[i], 1e-4 * largest);
    }
    EXPECT_EQ(found.nodes, real_nodes + spec.scratch_nodes);
    EXPECT_EQ(found.states.size(), size_t{1} *
                                       (spec.applied_layers(found.nodes - spec.scratch_nodes) + 1) *
                                       found.nodes * spec.width);
  }
}

// The first state is the encoder's, the last one is what the decoder reads.
TEST(Activations, StatesLieBetweenEncoderAndDecoder) {
  ModelSpec spec;
  spec.real_nodes = 3;
  spec.width = 4;
  spec.mlp_width = 5;
  spec.depth = 2;
  spec = resolve(spec);
  const Parameters<float> parameters = testing::random_parameters(spec, 1);
  const std::vector<float> input = {1, -2, 0.5F};
  const Activations found =
      activations_of(spec, parameters, {.inputs = input, .samples = 1, .real_nodes = 3});
  for (int i = 0; i < spec.real_nodes; ++i) {
    double output = parameters[names::bias(names::decoding)][0];
    for (int c = 0; c < spec.width; ++c) {
      EXPECT_NEAR(found.state(0, i, c),
                  parameters[names::weight(names::encoding)][c] * input[i] +
                      parameters[names::bias(names::encoding)][c],
                  1e-6);
      output += parameters[names::weight(names::decoding)][c] * found.state(spec.depth, i, c);
    }
    EXPECT_NEAR(found.outputs[i], output, 1e-5);
  }
}

TEST(Activations, RefusesAnotherShape) {
  const ModelSpec spec = resolve({});
  const std::vector<float> numbers(7);
  EXPECT_THROW(activations_of(spec, Parameters<float>(spec),
                              {.inputs = numbers, .samples = 1, .real_nodes = 8}),
               Error);
}

}  // namespace
}  // namespace posattn
