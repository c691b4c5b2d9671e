#include "posattn/model/routed/routed_network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "posattn/base/error.h"
#include "posattn/model/spec/random_spec_test.h"

namespace posattn {
namespace {

using ::testing::HasSubstr;
using testing::RandomBatch;

ModelSpec random_routed_spec(RandomStream& random) {
  ModelSpec spec = testing::random_spec(random);
  testing::make_one_stream(spec);
  apply_preset(random.below(2) == 0 ? "positional" : "m1", spec);
  spec.reach = 0;
  spec.vocabulary = random.below(2) == 0 ? 0 : 1 + static_cast<int>(random.below(5));
  spec.tokens_and_values = spec.vocabulary > 0 && random.below(2) == 0;
  spec.positions_added = spec.positions_in_input && random.below(2) == 0;
  if (spec.positions_added) spec.positions_in_input = false;
  if (spec.vocabulary > 0 && !spec.tokens_and_values && random.below(2) == 0) spec.data_columns = 0;
  spec.encoding = spec.positions_added ? Encoding::learned : Encoding::one_hot;
  spec.encoding_size = 0;
  spec.scratch_nodes = 1 + static_cast<int>(random.below(3));
  spec.scores = Scores::routes;
  spec.route_places = 1 + static_cast<int>(random.below(3));
  return resolve(spec);
}

// Any places, weights of any sum up to 1; every other weight and bias is sometimes zero.
Parameters<float> random_routed_parameters(const ModelSpec& spec, uint64_t seed) {
  Parameters<float> parameters = testing::random_parameters(spec, seed);
  RandomStream random(seed, Purpose::initial_values, 2, 0);
  for (const TensorInfo& tensor : parameters.layout().tensors()) {
    const bool weights = tensor.name.ends_with("route_weights");
    for (float& value : parameters.slice(tensor)) {
      if (tensor.integers) {
        value = static_cast<float>(random.below(spec.nodes()));
      } else if (weights) {
        value = random.uniform(0, 1) / static_cast<float>(spec.route_places);
      } else if (random.below(3) == 0) {
        value = 0;
      }
    }
    if (!weights) continue;
    // Rows that read one place only.
    const std::span<float> rows = parameters.slice(tensor);
    for (size_t i = 0; i < rows.size(); i += spec.route_places) {
      if (random.below(3) != 0) continue;
      std::ranges::fill(rows.subspan(i, spec.route_places), 0.0f);
      rows[i] = 1;
    }
  }
  return parameters;
}

double difference(const auto& ours, const std::vector<double>& expected) {
  double largest = 1e-30, worst = 0;
  for (const double x : expected) largest = std::max(largest, std::abs(x));
  for (size_t i = 0; i < expected.size(); ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(ours[i]) - expected[i]));
  }
  return worst / largest;
}

TEST(RoutedNetwork, AgreesWithTheReference) {
  for (int trial = 0; trial < 150; ++trial) {
    RandomStream random(1, Purpose::test_data, 0, trial);
    const ModelSpec spec = random_routed_spec(random);
    SCOPED_TRACE(to_json(spec));
    const Parameters<float> parameters = random_routed_parameters(spec, trial);
    const RandomBatch data(spec, 1 + random.below(40), spec.real_nodes, random);
    const Parameters<double> parameters64 = to_double(parameters);
    const auto expected = reference_forward(spec, parameters64, data.reference());
    std::vector<double> outputs64(expected.size());
    RoutedNetwork<double>(spec, parameters)
        .forward(data.inputs64.data(), data.samples, outputs64.data(), 2, data.tokens.data());
    EXPECT_LT(difference(outputs64, expected), 1e-12);

    Network network(spec, {.threads = 1 + static_cast<int>(random.below(3))});
    std::vector<float> outputs(expected.size());
    network.forward(parameters, data.batch(), outputs);
    EXPECT_LT(difference(outputs, expected), 1e-5);
    const auto attention = network.attention(parameters, data.batch());
    EXPECT_LT(difference(attention, reference_attention(spec, parameters64, data.reference())),
              1e-6);
  }
}

TEST(RoutedNetwork, SameBitsForAnyNumberOfSamplesAndThreads) {
  RandomStream random(2, Purpose::test_data, 0, 0);
  ModelSpec spec;
  spec.real_nodes = 2000;  // more than the block of nodes that one thread takes
  spec.width = 4;
  spec.mlp_width = 5;
  spec.scores = Scores::routes;
  spec.route_places = 2;
  spec = resolve(spec);
  const Parameters<float> parameters = random_routed_parameters(spec, 5);
  const RandomBatch data(spec, 40, spec.real_nodes, random);
  const RoutedNetwork<float> network(spec, parameters);
  std::vector<float> expected(data.inputs.size());
  network.forward(data.inputs.data(), data.samples, expected.data());
  for (const int threads : {1, 2, 5}) {
    for (const int64_t samples : {1, 5, 17, 40}) {
      std::vector<float> outputs(samples * spec.real_nodes);
      network.forward(data.inputs.data(), samples, outputs.data(), threads);
      EXPECT_TRUE(std::ranges::equal(outputs, std::span(expected).first(outputs.size())))
          << threads << " threads, " << samples << " samples";
    }
  }
}

TEST(RoutedNetwork, NotANumberReachesTheOutput) {
  ModelSpec spec;
  spec.scores = Scores::routes;
  spec = resolve(spec);
  const Parameters<float> parameters = random_routed_parameters(spec, 1);
  std::vector<float> inputs(spec.real_nodes, NAN), outputs(spec.real_nodes);
  RoutedNetwork<float>(spec, parameters).forward(inputs.data(), 1, outputs.data());
  for (const float x : outputs) EXPECT_TRUE(std::isnan(x));
}

TEST(RoutedNetwork, RefusesWhatItCannotDo) {
  ModelSpec spec;
  spec.scores = Scores::routes;
  spec = resolve(spec);
  Parameters<float> parameters(spec), gradient(spec);
  const std::vector<float> numbers(8);
  std::vector<float> outputs(8);
  const auto message = [](const auto& action) -> std::string {
    try {
      action();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::configuration);
      return error.what();
    }
    return "";
  };
  const Batch batch{numbers, numbers, 1, 8};
  Network network(spec);
  EXPECT_THAT(message([&] { network.gradient(parameters, batch, {}, gradient); }),
              HasSubstr("--dense"));
  const Batch shorter{std::span(numbers).first(7), {}, 1, 7};
  EXPECT_THAT(message([&] { network.forward(parameters, shorter, outputs); }),
              HasSubstr("7 nodes for a routed model"));
  for (const float bad : {-1.0f, 9.0f, NAN}) {
    parameters["transformer_layers.2.attn.routes"][3] = bad;
    // Only a head with output weights matters, so there must be one.
    for (const char* name : {"attn.v_proj.weight", "attn.o_proj.weight", "mlp.mlp.0.weight"}) {
      std::ranges::fill(parameters["transformer_layers.2." + std::string(name)], 1.0f);
    }
    EXPECT_THAT(message([&] { network.forward(parameters, batch, outputs); }),
                HasSubstr("a route to node"));
  }
  spec.real_nodes = 1 << 20;
  spec.encoding_size = 0;
  spec.width = spec.heads = spec.depth = 1;
  spec = resolve(spec);
  EXPECT_THAT(message([&] { routed_attention(spec, Parameters<float>(spec)); }),
              HasSubstr("1048577 nodes"));
}

}  // namespace
}  // namespace posattn
