#include "posattn/model/spec/scale_wrap.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "posattn/base/error.h"
#include "posattn/model/causal_network.h"
#include "posattn/model/hooks.h"
#include "posattn/model/spec/random_spec_test.h"

namespace posattn {
namespace {

using testing::random_parameters;
using testing::RandomBatch;

ModelSpec wrapped_spec(const char* preset) {
  ModelSpec spec;
  spec.real_nodes = 5;
  spec.width = spec.mlp_width = 8;
  spec.depth = 2;
  spec.output_columns = 2;
  apply_preset(preset, spec);
  spec.wrap = Wrap::scale;
  return resolve(spec);
}

std::vector<float> times(std::vector<float> values, float c) {
  for (float& value : values) value *= c;
  return values;
}

std::vector<float> outputs_of(const ModelSpec& spec, const Parameters<float>& parameters,
                              const Batch& batch, Path path = Path::automatic) {
  std::vector<float> outputs(batch.samples * batch.real_nodes * spec.output_columns);
  Network(spec, {.path = path}).forward(parameters, batch, outputs);
  return outputs;
}

// By hand: r g(x / r), sample by sample.
TEST(ScaleWrap, IsTheNetworkBetweenADivisionAndAProduct) {
  ModelSpec spec = wrapped_spec("standard");
  RandomStream random(1, Purpose::test_data, 0, 0);
  const RandomBatch data(spec, 3, 4, random);
  const Parameters<double> parameters = to_double(random_parameters(spec, 3));
  const std::vector<double> found = reference_forward(spec, parameters, data.reference());
  std::vector<double> inside = data.inputs64;
  double units[3] = {};
  for (int s = 0; s < 3; ++s) {
    for (int i = 0; i < 4; ++i) units[s] += inside[4 * s + i] * inside[4 * s + i] / 4;
    units[s] = std::sqrt(units[s]);
    for (int i = 0; i < 4; ++i) inside[4 * s + i] /= units[s];
  }
  spec.wrap = Wrap::none;
  ReferenceBatch batch = data.reference();
  batch.inputs = inside;
  const std::vector<double> expected = reference_forward(spec, parameters, batch);
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i], units[i / 8] * expected[i], 1e-14 * (1 + std::abs(found[i])));
  }
}

// To the bit for powers of two: outputs, losses, and gradients, which are c^2 times as large.
TEST(ScaleWrap, EngineAndTrainingDoNotSeeTheScale) {
  for (const char* preset : {"positional", "standard", "scale-free"}) {
    const ModelSpec spec = wrapped_spec(preset);
    RandomStream random(2, Purpose::test_data, 0, 0);
    const RandomBatch data(spec, 7, 5, random);
    const Parameters<float> parameters = random_parameters(spec, 3);
    const std::vector<float> inputs = times(data.inputs, 64), targets = times(data.targets, 64);
    Batch small = data.batch(), large = data.batch();
    large.inputs = inputs;
    large.targets = targets;
    for (const Path path : {Path::plain, Path::folded}) {
      EXPECT_EQ(outputs_of(spec, parameters, large, path),
                times(outputs_of(spec, parameters, small, path), 64));
      Network network(spec, {.path = path, .threads = 2});
      Parameters<float> of_small(spec), of_large(spec);
      const double loss = network.gradient(parameters, small, data.mask, of_small);
      EXPECT_EQ(network.gradient(parameters, large, data.mask, of_large), 4096 * loss);
      EXPECT_GT(loss, 0);
      for (size_t i = 0; i < of_small.values().size(); ++i) {
        ASSERT_EQ(of_large.values()[i], 4096 * of_small.values()[i]) << preset;
      }
    }
  }
}

TEST(ScaleWrap, ZeroStaysZeroAndHasNoGradient) {
  const ModelSpec spec = wrapped_spec("standard");
  const Parameters<float> parameters = random_parameters(spec, 3);
  const std::vector<float> inputs(5), targets(10, 3);
  const Batch batch{.inputs = inputs, .targets = targets, .samples = 1, .real_nodes = 5};
  EXPECT_THAT(outputs_of(spec, parameters, batch), ::testing::Each(0));
  Parameters<float> gradient(spec);
  EXPECT_EQ(Network(spec).gradient(parameters, batch, {}, gradient), 9);
  EXPECT_THAT(gradient.values(), ::testing::Each(0));
}

// A node of a token has no number, whatever stands in its place; tokens stay as they are.
TEST(ScaleWrap, NodesOfTokensHaveNoSize) {
  ModelSpec spec = wrapped_spec("standard");
  spec.vocabulary = 3;
  spec = resolve(spec);
  const Parameters<float> parameters = random_parameters(spec, 3);
  const std::vector<float> inputs = {9, 1, -7, 1, 0.5f}, fewer = {0, 1, 0, 1, 0.5f};
  const std::vector<int32_t> tokens = {2, -1, 0, -1, -1};
  const auto outputs = [&](const std::vector<float>& x) {
    const Batch batch{.inputs = x, .samples = 1, .real_nodes = 5, .tokens = tokens};
    return outputs_of(spec, parameters, batch);
  };
  const std::vector<float> at_one = outputs(fewer);
  EXPECT_EQ(outputs(inputs), at_one);
  EXPECT_EQ(outputs(times(fewer, 64)), times(at_one, 64));
  const Batch batch{.inputs = fewer, .samples = 1, .real_nodes = 5, .tokens = tokens};
  const ScaledBatch<float> scaled(spec, batch);
  EXPECT_FLOAT_EQ(scaled.batch().unit(0), std::sqrt(2.25f / 3));
  EXPECT_FLOAT_EQ(scaled.batch().inputs[1], 1 / std::sqrt(2.25f / 3));
  spec.data_columns = 0;
  EXPECT_THROW(resolve(spec), Error);
}

TEST(ScaleWrap, ActivationsAreThoseInsideAndOutputsThoseOutside) {
  const ModelSpec spec = wrapped_spec("standard");
  RandomStream random(2, Purpose::test_data, 0, 0);
  const RandomBatch data(spec, 1, 5, random);
  const Parameters<float> parameters = random_parameters(spec, 3);
  const std::vector<float> inputs = times(data.inputs, 16);
  Batch large = data.batch();
  large.inputs = inputs;
  const Activations at_one = activations_of(spec, parameters, data.batch()),
                    at_c = activations_of(spec, parameters, large);
  EXPECT_EQ(at_one.states, at_c.states);
  EXPECT_EQ(times(at_one.outputs, 16), at_c.outputs);
  const auto no_change = [](const ActivationView&) {};
  EXPECT_EQ(run_with_hook(spec, parameters, large, no_change), at_c.outputs);
  Network network(spec);
  EXPECT_EQ(network.attention(parameters, large), network.attention(parameters, data.batch()));
}

TEST(ScaleWrap, IsAFieldOfFilesAndRefusedNodeByNode) {
  ModelSpec spec = wrapped_spec("positional");
  spec.causal = true;
  EXPECT_NE(CausalNetwork::refusal(spec), "");
  EXPECT_EQ(spec_from_json(to_json(spec)), spec);
  EXPECT_THAT(to_json(spec), ::testing::HasSubstr("\"wrap\""));
  spec.wrap = Wrap::none;
  EXPECT_EQ(CausalNetwork::refusal(spec), "");
  EXPECT_THAT(to_json(spec), ::testing::Not(::testing::HasSubstr("\"wrap\"")));
}

}  // namespace
}  // namespace posattn
