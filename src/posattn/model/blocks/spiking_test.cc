// Spiking networks as a whole.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "posattn/base/error.h"
#include "posattn/model/attention/rows.h"
#include "posattn/model/blocks/block_network.h"
#include "posattn/model/causal_network.h"
#include "posattn/model/network.h"
#include "posattn/model/spec/random_spec_test.h"

namespace posattn {
namespace {

using testing::RandomBatch;

ModelSpec spiking(const std::string& kinds = {}, bool causal = false, int time_steps = 3) {
  ModelSpec spec;
  spec.real_nodes = 6;
  spec.width = 8;
  spec.mlp_width = 7;
  spec.depth = 2;
  spec.causal = causal;
  spec.time_steps = time_steps;
  spec.kinds = kinds;
  apply_preset("spiking", spec);
  return resolve(spec);
}

// Weights of ordinary size, and the gains of the start, at which neurons neither rest nor always
// fire.
Parameters<float> lively_parameters(const ModelSpec& spec, uint64_t seed) {
  Parameters<float> parameters = testing::random_parameters(spec, seed);
  for (const TensorInfo& t : parameters.layout().tensors()) {
    if (t.name.ends_with(".gain")) {
      std::ranges::fill(parameters.slice(t), static_cast<float>(t.value));
    }
  }
  return parameters;
}

// Neurons whose spikes are no steps have a true derivative, in every tensor and input.
TEST(Spiking, GradientOfSoftNeuronsIsTheDerivativeOfTheLoss) {
  ModelSpec tokens = spiking();
  tokens.vocabulary = 4;
  tokens.positions_added = true;
  tokens.encoding = Encoding::learned;
  tokens.encoding_size = tokens.width;
  tokens.loops = "2";
  ModelSpec three_maps = spiking("spiking score-bias=distance", true, 4);
  three_maps.mlp_depth = 3;
  three_maps.wrap = Wrap::scale;
  for (const ModelSpec& spec :
       {spiking(), spiking("spiking score-bias=gray"), resolve(tokens), resolve(three_maps)}) {
    SCOPED_TRACE(to_json(spec));
    Parameters<double> parameters = to_double(lively_parameters(spec, 3));
    RandomStream random(1, Purpose::test_data, 0, 0);
    const RandomBatch data(spec, 2, 5, random);
    BlockNetwork<double> network(spec, true);
    BlockTape<double> tape;
    std::vector<double> sums;
    const auto loss = [&] {
      network.prepare(parameters, 5);
      sums.assign(network.sums_size(), 0);
      network.forward(data.reference(), 0, 2, tape);
      return network.backward(data.reference(), 0, 2, {}, 0.1, tape, sums);
    };
    loss();
    Parameters<double> gradient(spec);
    network.finish(sums, gradient);
    for (const TensorInfo& t : parameters.layout().tensors()) {
      if (!t.trained) continue;
      for (int draw = 0; draw < 3; ++draw) {
        const int64_t i = t.offset + random.below(static_cast<uint32_t>(t.size));
        const double saved = parameters.values()[i], h = 1e-5;
        parameters.values()[i] = saved + h;
        const double above = loss();
        parameters.values()[i] = saved - h;
        const double below = loss();
        parameters.values()[i] = saved;
        const double slope = (above - below) / (2 * h);
        EXPECT_NEAR(slope, gradient.values()[i], 1e-7 * (1 + std::abs(slope))) << t.name;
      }
    }
  }
}

// Rounding decides a spike now and then. With these seeds it decides none.
TEST(Spiking, FloatAgreesWithTheReference) {
  for (const char* kinds : {"spiking", "spiking score-bias=gray", "spiking score-bias=log"}) {
    const ModelSpec spec = spiking(kinds, false, 4);
    const Parameters<float> parameters = lively_parameters(spec, 4);
    RandomStream random(2, Purpose::test_data, 0, 0);
    const RandomBatch data(spec, 7, 6, random);
    Parameters<double> expected(spec);
    const double loss =
        reference_gradient(spec, to_double(parameters), data.reference(), {}, expected);
    Parameters<float> gradient(spec);
    Network network(spec, {.tile = 2});
    EXPECT_NEAR(network.gradient(parameters, data.batch(), {}, gradient), loss, 1e-5 * loss);
    double largest = 0;
    for (const double d : expected.values()) largest = std::max(largest, std::abs(d));
    ASSERT_GT(largest, 0.01);
    for (size_t i = 0; i < expected.values().size(); ++i) {
      ASSERT_NEAR(gradient.values()[i], expected.values()[i], 1e-5 * largest);
    }
  }
}

// Attention is whole: counts of equal spikes, plus b - (different bits) of Gray codes. Its mean
// over time steps is a multiple of 1 / time_steps.
TEST(Spiking, AttentionCountsAgreements) {
  for (const char* kinds : {"spiking", "spiking score-bias=gray"}) {
    const ModelSpec spec = spiking(kinds, false, 4);
    RandomStream random(3, Purpose::test_data, 0, 0);
    const RandomBatch data(spec, 1, 6, random);
    const std::vector<double> attention =
        reference_attention(spec, to_double(lively_parameters(spec, 5)), data.reference());
    const double most = spec.key_size() + (spec.score_bias == ScoreBias::gray ? 10 : 0);
    for (const double a : attention) {
      EXPECT_EQ(4 * a, std::round(4 * a));
      EXPECT_GE(a, 0);
      EXPECT_LE(a, most);
    }
    EXPECT_GT(*std::ranges::max_element(attention), *std::ranges::min_element(attention));
  }
}

// A row's agreements with itself are all d_k.
TEST(Spiking, AgreementsAreAnXnorAndACount) {
  const double spikes[] = {1, 0, 1, /* key */ 1, 0, 1, /* the other node */ 0, 0, 1, 0, 1, 0};
  generic::HeadShape keys{.nodes = 2, .size = 3, .stride = 6};
  std::vector<double> scores(4, 0.5);
  row_of(Scores::agreements).in<double>().scores(keys, spikes, spikes + 3, scores.data());
  EXPECT_EQ(scores, (std::vector<double>{3.5, 0.5, 2.5, 1.5}));
}

// ALiBi and logarithms are functions of |i - j|. So are Gray codes where the nodes are a power of
// two: that of n - 1 - i differs from that of i in the highest bit alone. A reversed sample then
// has the reversed answer, whatever the weights: no such network tells earlier nodes from later
// ones.
TEST(Spiking, SymmetricEncodingsCannotTellEarlierFromLater) {
  const auto reverses = [](const std::string& kinds, int nodes) {
    ModelSpec spec = spiking();
    spec.kinds = kinds;
    spec.real_nodes = nodes;
    spec.reach = spec.encoding_size = 0;
    spec = resolve(spec);
    for (uint32_t seed = 0; seed < 8; ++seed) {
      const Parameters<double> parameters = to_double(lively_parameters(spec, seed));
      RandomStream random(7, Purpose::test_data, 0, seed);
      const RandomBatch data(spec, 1, nodes, random);
      std::vector<double> turned = data.inputs64;
      std::ranges::reverse(turned);
      std::vector<double> outputs = reference_forward(
          spec, parameters, {.inputs = turned, .samples = 1, .real_nodes = nodes});
      std::ranges::reverse(outputs);
      if (outputs != reference_forward(spec, parameters, data.reference())) return false;
    }
    return true;
  };
  for (const char* bias : {"none", "gray", "log", "alibi"}) {
    EXPECT_TRUE(reverses(std::string("spiking score-bias=") + bias, 8)) << bias;
  }
  EXPECT_FALSE(reverses("spiking score-bias=gray", 7));
  EXPECT_FALSE(reverses("spiking score-bias=distance", 8));
  EXPECT_FALSE(reverses("spiking source=data-and-positions", 8));
}

// States are counts of spikes, at most 1 + 2 depth, whatever the input. So errors grow as the
// squares of the targets do: M(c) / c^2 tends to the mean of y^2.
TEST(Spiking, OutputsAreBounded) {
  const ModelSpec spec = spiking();
  const Parameters<float> parameters = lively_parameters(spec, 6);
  RandomStream random(4, Purpose::test_data, 0, 0);
  const RandomBatch data(spec, 50, 6, random);
  double largest = std::abs(parameters["decoding.bias"][0]);
  for (const float weight : parameters["decoding.weight"]) {
    largest += (1 + 2 * spec.depth) * std::abs(weight);
  }
  double square = 0;
  for (const float y : data.targets) square += static_cast<double>(y) * y / data.targets.size();
  for (const float c : {1.0F, 10.0F, 1e4F, 1e6F}) {
    std::vector<float> inputs = data.inputs, outputs(data.targets.size());
    for (float& x : inputs) x *= c;
    Network(spec).forward(parameters, {.inputs = inputs, .samples = 50, .real_nodes = 6}, outputs);
    double error = 0;
    for (size_t i = 0; i < outputs.size(); ++i) {
      EXPECT_LE(std::abs(outputs[i]), largest * 1.00001);
      error += std::pow(outputs[i] / c - data.targets[i], 2) / static_cast<double>(outputs.size());
    }
    if (c > 1000) {
      EXPECT_NEAR(error, square, 0.01 * square);
    }
  }
}

TEST(Spiking, SameBitsForAnyNumberOfThreadsAndTiles) {
  const ModelSpec spec = spiking();
  const Parameters<float> parameters = lively_parameters(spec, 7);
  RandomStream random(5, Purpose::test_data, 0, 0);
  const RandomBatch data(spec, 200, 6, random);
  std::vector<float> first;
  for (const int threads : {1, 2, 8}) {
    Parameters<float> gradient(spec);
    Network(spec, {.threads = threads}).gradient(parameters, data.batch(), {}, gradient);
    const std::vector<float> now(gradient.values().begin(), gradient.values().end());
    if (first.empty()) first = now;
    EXPECT_EQ(first, now);
  }
}

// A sample alone is the sample of a batch: nothing couples them, as a normalisation over a batch
// would.
TEST(Spiking, SamplesDoNotSeeEachOther) {
  const ModelSpec spec = spiking();
  const Parameters<double> parameters = to_double(lively_parameters(spec, 8));
  RandomStream random(6, Purpose::test_data, 0, 0);
  const RandomBatch data(spec, 9, 6, random);
  BlockNetwork<double> network(spec);
  network.prepare(parameters, 6);
  BlockTape<double> all, one;
  network.forward(data.reference(), 0, 9, all);
  const auto count = static_cast<std::ptrdiff_t>(all.output.size() / 9);
  for (int s = 0; s < 9; ++s) {
    network.forward(data.reference(), s, 1, one);
    EXPECT_TRUE(std::equal(one.output.begin(), one.output.end(), all.output.begin() + s * count));
  }
}

TEST(Spiking, RefusesWhatHasNoSpikes) {
  const auto refused = [](auto change) {
    ModelSpec spec = spiking();
    change(spec);
    EXPECT_THROW(resolve(spec), Error) << to_json(spec);
  };
  refused([](ModelSpec& s) { s.time_steps = 0; });
  refused([](ModelSpec& s) { s.scores = Scores::dot; });
  refused([](ModelSpec& s) { s.weighting = Weighting::softmax; });
  refused([](ModelSpec& s) { s.join = Join::concatenate; });
  refused([](ModelSpec& s) { s.normalisation = Normalisation::before; });
  refused([](ModelSpec& s) { s.activation = Activation::gelu; });
  refused([](ModelSpec& s) { s.source_scale = SourceScale::node; });
  refused([](ModelSpec& s) { s.rotation = Rotation::rope; });
  refused([](ModelSpec& s) { s.score_window = 3; });
  refused([](ModelSpec& s) { s.score_bias = ScoreBias::window; });
  refused([](ModelSpec& s) { s.kinds = "spiking,data"; });
  EXPECT_FALSE(CausalNetwork::refusal(spiking({}, true)).empty());
}

}  // namespace
}  // namespace posattn
