#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <thread>

#include "posattn/base/error.h"
#include "posattn/model/cuda/general/engine.h"
#include "posattn/model/device_network.h"
#include "posattn/model/spec/random_spec_test.h"

namespace posattn {
namespace {

using testing::RandomBatch;

std::vector<float> outputs_of(ForwardPass& network, const ModelSpec& spec,
                              const Parameters<float>& parameters, const RandomBatch& batch) {
  std::vector<float> outputs(batch.samples * batch.real_nodes * spec.output_columns, NAN);
  network.forward(parameters, batch.batch(), outputs);
  return outputs;
}

class DeviceNetworkOnRandomSpecs : public ::testing::TestWithParam<int> {};

TEST_P(DeviceNetworkOnRandomSpecs, AgreesWithTheReferenceAtAnyLengthAndInParts) {
  const int seed = GetParam();
  RandomStream random(19, Purpose::test_data, 0, seed);
  ModelSpec spec = testing::random_open_spec(random);
  SCOPED_TRACE(to_json(spec));
  if (!cuda::general_supports(spec)) return;  // no such run trains there
  const Parameters<float> parameters = testing::random_parameters(spec, seed);
  DeviceNetwork network(spec, 5);
  const auto fewer = 1 + static_cast<int>(random.below(spec.real_nodes));
  for (const int real_nodes : {spec.real_nodes, fewer}) {
    RandomBatch batch(spec, 13, real_nodes, random);
    batch.context.training = false;
    const std::vector<float> outputs = outputs_of(network, spec, parameters, batch);
    const std::vector<double> expected =
        reference_forward(spec, to_double(parameters), batch.reference());
    ASSERT_EQ(outputs.size(), expected.size());
    const double largest = std::abs(*std::ranges::max_element(
        expected, [](double a, double b) { return std::abs(a) < std::abs(b); }));
    // A norm of few columns divides by a deviation that may be small.
    const double tolerance = spec.normalisation == Normalisation::none ? 3e-5 : 2e-4;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_NEAR(outputs[i], expected[i], tolerance * (1 + largest)) << i;
    }
    DeviceNetwork at_once(spec, 13);
    EXPECT_EQ(outputs_of(at_once, spec, parameters, batch), outputs);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, DeviceNetworkOnRandomSpecs,
                         ::testing::Range(0, std::getenv("POSATTN_LONG_TESTS") ? 200 : 24));

// f(s, c x) = c f(s, x) for powers of two, at lengths of which some nodes are absent, and f(s, 0) =
// 0.
TEST(DeviceNetwork, HasTwoStreamsThatScaleToTheBit) {
  for (const char* preset : {"two-streams", "two-streams-gated", "two-streams-linear"}) {
    ModelSpec spec;
    spec.vocabulary = 4;
    spec.tokens_and_values = true;
    spec.width = 12;
    spec.depth = 5;  // places are taken again after two layers
    apply_preset(preset, spec);
    spec.symbols_read_values = true;
    spec = resolve(spec);
    const Parameters<float> parameters = testing::random_parameters(spec, 3);
    RandomStream random(19, Purpose::test_data, 2, 0);
    RandomBatch batch(spec, 6, spec.real_nodes - 2, random);
    DeviceNetwork network(spec, 6);
    std::vector<float> expected = outputs_of(network, spec, parameters, batch);
    const std::vector<double> reference =
        reference_forward(spec, to_double(parameters), batch.reference());
    const auto [least, most] = std::ranges::minmax(reference);
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(expected[i], reference[i], 2e-4 * (1 + most - least)) << i;
    }
    for (float& x : batch.inputs) x *= 256;
    for (float& y : expected) y *= 256;
    EXPECT_EQ(outputs_of(network, spec, parameters, batch), expected);
    std::ranges::fill(batch.inputs, 0.0f);
    for (const float y : outputs_of(network, spec, parameters, batch)) EXPECT_EQ(y, 0);
  }
}

TEST(DeviceNetwork, ThreadsTakeTurns) {
  const ModelSpec spec = resolve(ModelSpec());
  RandomStream random(19, Purpose::test_data, 1, 0);
  const RandomBatch batch(spec, 20, spec.real_nodes, random);
  DeviceNetwork network(spec, 20);
  std::vector<std::vector<float>> alone, together(4);
  for (int i = 0; i < 4; ++i) {
    alone.push_back(outputs_of(network, spec, testing::random_parameters(spec, i), batch));
  }
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        together[i] = outputs_of(network, spec, testing::random_parameters(spec, i), batch);
      });
    }
  }
  EXPECT_EQ(together, alone);
}

TEST(DeviceNetwork, LargeModelsTakeFewerSamplesAtOnce) {
  ModelSpec spec;
  spec.real_nodes = 64;
  spec = resolve(spec);
  const int64_t bytes = DeviceNetwork::bytes_needed(spec, 1'000'000);
  EXPECT_LT(bytes, int64_t{3} << 28);
  EXPECT_LT(DeviceNetwork::bytes_needed(spec, 16), bytes / 10);
}

TEST(DeviceNetwork, RefusesABatchThatIsNotTheModels) {
  const ModelSpec spec = resolve(ModelSpec());
  DeviceNetwork network(spec, 4);
  const std::vector<float> inputs(7);
  std::vector<float> outputs(8);
  const Batch batch{.inputs = inputs, .samples = 1, .real_nodes = 8};
  EXPECT_THROW(network.forward(testing::random_parameters(spec, 1), batch, outputs), Error);
}

}  // namespace
}  // namespace posattn
