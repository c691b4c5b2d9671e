// Models of two streams: what their theorem says, on random weights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "posattn/base/error.h"
#include "posattn/model/causal_network.h"
#include "posattn/model/spec/random_spec_test.h"
#include "posattn/model/spec/spec_fields.h"
#include "posattn/model/tiles/tile_network.h"

namespace posattn {
namespace {

using ::testing::HasSubstr;
using testing::random_parameters;
using testing::RandomBatch;

ModelSpec stream_spec(const char* preset, bool fed = false) {
  ModelSpec spec;
  spec.real_nodes = 5;
  spec.data_columns = 2;
  spec.output_columns = 2;
  spec.vocabulary = 4;
  spec.tokens_and_values = true;
  spec.width = 12;
  spec.value_width = 6;
  spec.mlp_width = 10;
  spec.depth = 3;
  apply_preset(preset, spec);
  spec.symbols_read_values = fed;
  return resolve(spec);
}

std::vector<ModelSpec> all_specs() {
  return {stream_spec("two-streams"), stream_spec("two-streams-gated"),
          stream_spec("two-streams-linear"), stream_spec("two-streams-gated", true)};
}

template <class T>
std::vector<T> times(std::span<const T> x, T c) {
  std::vector<T> y(x.begin(), x.end());
  for (T& value : y) value *= c;
  return y;
}

std::vector<double> reference(const ModelSpec& spec, uint64_t seed, ReferenceBatch batch,
                              std::span<const double> inputs) {
  batch.inputs = inputs;
  return reference_forward(spec, to_double(random_parameters(spec, seed)), batch);
}

void expect_near(const std::vector<double>& found, const std::vector<double>& expected) {
  double size = 0;
  for (const double y : expected) size = std::max(size, std::abs(y));
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-13 * size);
}

// f(s, c x) = c f(s, x).
TEST(TwoStreams, OutputsScaleWithTheNumbers) {
  for (const ModelSpec& spec : all_specs()) {
    SCOPED_TRACE(to_json(spec));
    RandomStream random(1, Purpose::test_data, 0, 0);
    const RandomBatch data(spec, 4, 4, random);
    const ReferenceBatch batch = data.reference();
    const auto at_one = reference(spec, 3, batch, batch.inputs);
    expect_near(reference(spec, 3, batch, times(batch.inputs, 3.0)), times<double>(at_one, 3.0));
    // In float to the bit for powers of 4: roots of mean squares are then exact multiples.
    Network network(spec);
    const Parameters<float> parameters = random_parameters(spec, 3);
    std::vector<float> one(at_one.size()), more(at_one.size());
    network.forward(parameters, data.batch(), one);
    for (const float c : {4.0f, 1024.0f, 1 / 4096.0f}) {
      const std::vector<float> inputs = times<float>(data.inputs, c);
      Batch large = data.batch();
      large.inputs = inputs;
      network.forward(parameters, large, more);
      EXPECT_EQ(more, times<float>(one, c)) << c;
    }
  }
}

// f(s, x + y) = f(s, x) + f(s, y) without ReLUs in the stream; with them not.
TEST(TwoStreams, WithoutAnMlpOfValuesOutputsAreLinear) {
  for (const bool linear : {true, false}) {
    const ModelSpec spec = stream_spec(linear ? "two-streams-linear" : "two-streams");
    RandomStream random(2, Purpose::test_data, 0, 0);
    const RandomBatch data(spec, 4, 5, random);
    const ReferenceBatch batch = data.reference();
    std::vector<double> other(batch.inputs.size()), sum(batch.inputs.size());
    for (size_t i = 0; i < sum.size(); ++i) {
      other[i] = random.uniform(-2, 2);
      sum[i] = batch.inputs[i] + other[i];
    }
    std::vector<double> apart = reference(spec, 4, batch, batch.inputs);
    const auto second = reference(spec, 4, batch, other), both = reference(spec, 4, batch, sum);
    for (size_t i = 0; i < apart.size(); ++i) apart[i] += second[i];
    if (linear) {
      expect_near(both, apart);
    } else {
      EXPECT_GT(std::abs(both[0] - apart[0]), 1e-6);
    }
  }
}

TEST(TwoStreams, ZeroGivesZeroAndFiniteGradients) {
  for (const ModelSpec& spec : all_specs()) {
    RandomStream random(3, Purpose::test_data, 0, 0);
    RandomBatch data(spec, 3, 5, random);
    std::ranges::fill(data.inputs, 0.0f);
    const Parameters<float> parameters = random_parameters(spec, 5);
    Network network(spec);
    std::vector<float> outputs(data.targets.size());
    network.forward(parameters, data.batch(), outputs);
    EXPECT_THAT(outputs, ::testing::Each(0.0f));
    Parameters<float> gradient(spec);
    network.gradient(parameters, data.batch(), {}, gradient);
    EXPECT_TRUE(std::ranges::all_of(gradient.values(), [](float g) { return std::isfinite(g); }));
  }
}

// Nothing is trained that cannot learn: Adam would divide 0 by 0.
TEST(TwoStreams, EveryParameterHasAGradient) {
  std::vector<ModelSpec> specs = all_specs();
  for (const bool joined : {false, true}) {
    for (const bool fed : {false, true}) {
      if (!joined && !fed) continue;
      ModelSpec classes = stream_spec("two-streams");
      classes.scores_read_values = joined;
      classes.symbols_read_values = fed;
      classes.loss = Loss::cross_entropy;
      specs.push_back(resolve(classes));
    }
  }
  for (const ModelSpec& spec : specs) {
    SCOPED_TRACE(to_json(spec));
    RandomStream random(4, Purpose::test_data, 0, 0);
    const RandomBatch data(spec, 8, 5, random);
    const Parameters<double> parameters = to_double(random_parameters(spec, 6));
    Parameters<double> gradient(parameters.shared_layout());
    reference_gradient(spec, parameters, data.reference(), {}, gradient);
    for (const TensorInfo& tensor : gradient.layout().tensors()) {
      double largest = 0;
      for (const double g : gradient.slice(tensor)) largest = std::max(largest, std::abs(g));
      EXPECT_TRUE(!tensor.trained || largest > 1e-9) << tensor.name;
    }
  }
}

TEST(TwoStreams, GatesBeginOpen) {
  ModelSpec gated = stream_spec("two-streams"), plain = gated;
  gated.value_gates = ValueGates::mix_and_hidden;
  gated = resolve(gated);
  Parameters<float> with(gated), without(plain);
  initialise(with, 1);
  // Gates need the symbols that the last layer mixes; the others are shared by name.
  for (const TensorInfo& tensor : without.layout().tensors()) {
    std::ranges::copy(with[tensor.name], without.slice(tensor).begin());
  }
  RandomStream random(5, Purpose::test_data, 0, 0);
  const RandomBatch data(gated, 3, 5, random);
  std::vector<float> of_gated(data.targets.size()), of_plain(data.targets.size());
  Network(gated).forward(with, data.batch(), of_gated);
  Network(plain).forward(without, data.batch(), of_plain);
  EXPECT_EQ(of_gated, of_plain);
}

TEST(TwoStreams, HaveTheSameBitsForAnyThreads) {
  for (const ModelSpec& spec : all_specs()) {
    RandomStream random(6, Purpose::test_data, 0, 0);
    const RandomBatch data(spec, 40, 5, random);
    const Parameters<float> parameters = random_parameters(spec, 7);
    Parameters<float> one(spec), three(spec);
    const double loss = Network(spec, {.threads = 1}).gradient(parameters, data.batch(), {}, one);
    EXPECT_EQ(Network(spec, {.threads = 3}).gradient(parameters, data.batch(), {}, three), loss);
    EXPECT_TRUE(std::ranges::equal(one.values(), three.values()));
  }
}

// A node that holds a token in place of a number has no value.
TEST(TwoStreams, NodesOfTokensMayHaveNoNumber) {
  ModelSpec spec = stream_spec("two-streams");
  spec.tokens_and_values = false;
  RandomStream random(7, Purpose::test_data, 0, 0);
  RandomBatch data(spec, 2, 5, random);
  data.tokens.assign(data.tokens.size(), -1);
  data.tokens[0] = 1;
  const ReferenceBatch batch = data.reference();
  std::vector<double> other(batch.inputs.begin(), batch.inputs.end());
  const auto expected = reference(spec, 8, batch, other);
  other[0] += 1;  // of the node with a token
  EXPECT_EQ(reference(spec, 8, batch, other), expected);
  other[2] += 1;
  EXPECT_NE(reference(spec, 8, batch, other), expected);
}

TEST(TwoStreams, OtherEnginesRefuse) {
  const ModelSpec spec = stream_spec("two-streams");
  for (const Path path : {Path::automatic, Path::plain, Path::folded}) {
    EXPECT_FALSE(engine::TileNetwork::supports(spec, path));
  }
  EXPECT_EQ(CausalNetwork::refusal(spec), "has two streams");
}

std::string problem_of(const std::function<void(ModelSpec&)>& change) {
  ModelSpec spec = stream_spec("two-streams");
  change(spec);
  try {
    plan_of(resolve(spec));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::configuration);
    return error.problem();
  }
  return "none";
}

TEST(TwoStreams, ImpossibleCombinationsAreRefused) {
  EXPECT_EQ(problem_of([](ModelSpec&) {}), "none");
  EXPECT_THAT(problem_of([](ModelSpec& s) { s.value_width = 7; }), HasSubstr("2 heads"));
  EXPECT_THAT(problem_of([](ModelSpec& s) { s.join = Join::concatenate; }),
              HasSubstr("'concatenate'"));
  EXPECT_THAT(problem_of([](ModelSpec& s) { s.normalisation = Normalisation::none; }),
              HasSubstr("normalisation 'none'"));
  EXPECT_THAT(problem_of([](ModelSpec& s) { s.attention = AttentionSource::positions; }),
              HasSubstr("attention from positions"));
  EXPECT_THAT(problem_of([](ModelSpec& s) { s.source_scale = SourceScale::node; }),
              HasSubstr("source scale 'node'"));
  EXPECT_THAT(problem_of([](ModelSpec& s) { s.weighting = Weighting::max_plus; }),
              HasSubstr("values added to scores"));
  EXPECT_THAT(problem_of([](ModelSpec& s) { s.loss = Loss::cross_entropy; }),
              HasSubstr("never see the values"));
  EXPECT_THAT(problem_of([](ModelSpec& s) {
                s.value_mlp_width = 0;
                s.value_gates = ValueGates::mix_and_hidden;
              }),
              HasSubstr("no MLP of values"));
  EXPECT_THAT(problem_of([](ModelSpec& s) {
                s.vocabulary = 0;
                s.tokens_and_values = s.positions_in_input = false;
              }),
              HasSubstr("neither tokens nor positions"));
  EXPECT_THAT(problem_of([](ModelSpec& s) { s.value_width = 0; }), HasSubstr("one stream"));
  ModelSpec spec;
  spec.value_width = 8;
  EXPECT_THROW(apply_preset("standard", spec), Error);
  spec.value_mlp_width = 8;
  EXPECT_THROW(apply_preset("two-streams-linear", spec), Error);
}

TEST(TwoStreams, HaveNames) {
  for (const char* name : {"two-streams", "two-streams-gated", "two-streams-linear"}) {
    const ModelSpec spec = stream_spec(name);
    EXPECT_EQ(preset_name(spec), name);
    EXPECT_EQ(spec_from_json(to_json(spec)), spec);
  }
}

}  // namespace
}  // namespace posattn
