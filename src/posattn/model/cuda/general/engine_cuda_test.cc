// The general engine against the reference network over random specs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "posattn/model/cuda/general/engine.h"
#include "posattn/model/cuda/step/engine_harness_test.h"

namespace posattn::cuda {
namespace {

using testing::EngineSlot;

// A hidden unit near its ReLU's corner may fall on the other side in tf32, hence the width; and a
// norm of few columns divides by a deviation that may be small.
double tolerance(const FleetShape& shape) {
  if (shape.precision == Precision::tf32) return 0.2;
  return shape.spec.normalisation == Normalisation::none ? 3e-5 : 2e-4;
}

int seeds() { return std::getenv("POSATTN_LONG_TESTS") ? 200 : 16; }

// Three slots, of which one rests and one may have absent nodes, in fp32; then one of them in tf32
// and with scores that are computed again in chunks of a few samples.
void check_random(ModelSpec spec, int seed, RandomStream& random) {
  FleetShape shape;
  spec.depth = std::min(spec.depth, 2);
  shape.spec = resolve(spec);
  SCOPED_TRACE(to_json(shape.spec));
  if (!general_supports(shape.spec)) return;  // refused, as the engine's choice has it
  shape.batch = 1 + random.below(17);
  shape.slots = 3;
  std::vector<EngineSlot> slots;
  for (int slot = 0; slot < shape.slots; ++slot) {
    const int64_t samples[] = {1 + random.below(static_cast<uint32_t>(shape.batch)), 0,
                               shape.batch};  // the second rests
    const int real_nodes = slot == 0 ? 1 + static_cast<int>(random.below(shape.spec.real_nodes))
                                     : shape.spec.real_nodes;
    slots.push_back(testing::random_slot(shape.spec, 10 * seed + slot, samples[slot], real_nodes));
  }
  testing::check_engine(shape, slots, tolerance(shape),
                        [](const FleetShape& s) { return make_general(s); });
  shape.slots = 1;
  for (const Precision precision : {Precision::tf32, Precision::fp32}) {
    SCOPED_TRACE(precision == Precision::tf32 ? "tf32, in chunks" : "fp32, in chunks");
    shape.precision = precision;
    const auto engine = make_general(shape, 3000);
    const auto result = testing::run_engine(*engine, shape, {slots[0]});
    testing::expect_matches_reference(shape.spec, slots[0], result[0], tolerance(shape));
  }
}

class GeneralEngineOnRandomSpecs : public ::testing::TestWithParam<int> {};

TEST_P(GeneralEngineOnRandomSpecs, AgreesWithTheReference) {
  const int seed = GetParam();
  RandomStream random(7, Purpose::test_data, 0, seed);
  ModelSpec spec = posattn::testing::random_spec(random);
  posattn::testing::make_one_stream(spec);
  apply_preset(presets()[seed % presets().size()].name, spec);  // each of them
  spec.reach = 0;
  posattn::testing::add_random_pairs(random, spec);
  check_random(spec, seed, random);
}

TEST_P(GeneralEngineOnRandomSpecs, AgreesForAnyBlocks) {
  const int seed = GetParam();
  RandomStream random(7, Purpose::test_data, 1, seed);
  ModelSpec spec = posattn::testing::random_open_spec(random);
  check_random(spec, seed, random);
}

// Of random blocks those of two streams that the engine knows.
TEST_P(GeneralEngineOnRandomSpecs, AgreesForTwoStreams) {
  const int seed = GetParam();
  RandomStream random(7, Purpose::test_data, 2, seed);
  ModelSpec spec;
  do {
    spec = posattn::testing::random_open_spec(random);
    spec.loops = "1";
  } while (!spec.two_streams() || !general_supports(resolve(spec)));
  check_random(spec, seed, random);
}

INSTANTIATE_TEST_SUITE_P(Seeds, GeneralEngineOnRandomSpecs, ::testing::Range(0, seeds()));

// Letters and numbers, as recall has them.
ModelSpec stream_spec(const char* preset) {
  ModelSpec spec;
  spec.real_nodes = 6;
  spec.data_columns = spec.output_columns = 2;
  spec.vocabulary = 4;
  spec.tokens_and_values = true;
  spec.width = 12;
  spec.mlp_width = 10;
  spec.depth = 3;
  apply_preset(preset, spec);
  if (spec.two_streams()) spec.value_width = 6;
  return resolve(spec);
}

const char* const stream_presets[] = {"two-streams", "two-streams-gated", "two-streams-linear"};

// Three layers, so that places of gradients and of a forward pass are taken again.
TEST(GeneralEngine, TakesTwoStreamsByName) {
  FleetShape shape;
  shape.batch = 7;
  shape.slots = 2;
  for (const char* preset : stream_presets) {
    for (const Loss loss : {Loss::squared_error, Loss::cross_entropy}) {
      for (const bool symbols_read : {false, true}) {
        for (const bool causal : {false, true}) {
          shape.spec = stream_spec(preset);
          shape.spec.loss = loss;
          shape.spec.causal = causal;
          shape.spec.symbols_read_values = symbols_read;
          if (loss == Loss::cross_entropy && !symbols_read) shape.spec.scores_read_values = true;
          shape.spec = resolve(shape.spec);
          SCOPED_TRACE(to_json(shape.spec));
          ASSERT_TRUE(general_supports(shape.spec));
          testing::check_engine(shape,
                                {testing::random_slot(shape.spec, 5, 7, 6),
                                 testing::random_slot(shape.spec, 6, 4, 5)},
                                tolerance(shape),
                                [](const FleetShape& s) { return make_general(s); });
        }
      }
    }
  }
}

TEST(GeneralEngine, RefusesTwoStreamsWithoutNormalisation) {
  ModelSpec spec = stream_spec(stream_presets[0]);
  spec.normalisation = Normalisation::none;
  EXPECT_FALSE(general_supports(resolve(spec)));
}

// What satisfies f(s, c x) = c f(s, x): two streams, and any model whose input is divided by its
// size.
std::vector<ModelSpec> specs_that_scale() {
  std::vector<ModelSpec> specs;
  for (const char* preset : stream_presets) {
    for (const bool symbols_read : {false, true}) {
      specs.push_back(stream_spec(preset));
      specs.back().symbols_read_values = symbols_read;
    }
  }
  specs.push_back(stream_spec("standard"));
  specs.back().wrap = Wrap::scale;
  return specs;
}

// With targets times c the loss and its gradient are c^2 times as large; of a wrapped model too. A
// power of two costs no rounding.
TEST(GeneralEngine, ModelsThatScaleDoSoToTheBit) {
  FleetShape shape;
  shape.batch = 5;
  for (const ModelSpec& spec : specs_that_scale()) {
    shape.spec = spec;
    EngineSlot slot = testing::random_slot(spec, 5, 5, 6);
    std::ranges::fill(slot.batch.mask, uint8_t{1});
    for (const Precision precision : {Precision::fp32, Precision::tf32}) {
      shape.precision = precision;
      SCOPED_TRACE(to_json(spec) + (precision == Precision::tf32 ? " tf32" : ""));
      const auto engine = make_general(shape);
      const auto expected = testing::run_engine(*engine, shape, {slot})[0];
      for (const float c : {0.25f, 1024.0f}) {
        EngineSlot scaled = slot;
        for (float& x : scaled.batch.inputs) x *= c;
        for (float& x : scaled.batch.targets) x *= c;
        auto result = testing::run_engine(*engine, shape, {scaled})[0];
        result.loss /= c * c;
        for (float& g : result.gradient.values()) g /= c * c;
        testing::expect_same_bits(result, expected);
      }
    }
  }
}

// No answer but 0 can be given to zeros, so nothing moves.
TEST(GeneralEngine, ModelsThatScaleAnswerZerosByZeros) {
  FleetShape shape;
  shape.batch = 5;
  for (const ModelSpec& spec : specs_that_scale()) {
    SCOPED_TRACE(to_json(spec));
    shape.spec = spec;
    EngineSlot slot = testing::random_slot(spec, 5, 5, 6);
    std::ranges::fill(slot.batch.mask, uint8_t{1});
    std::ranges::fill(slot.batch.inputs, 0.0f);
    double squares = 0;
    for (const float y : slot.batch.targets) squares += double{y} * y;
    const auto result = testing::run_engine(*make_general(shape), shape, {slot})[0];
    const auto outputs = static_cast<double>(slot.batch.targets.size());
    EXPECT_NEAR(result.loss, squares / outputs, 1e-6 * result.loss);
    for (const TensorInfo& tensor : result.gradient.layout().tensors()) {
      if (!tensor.trained) continue;
      EXPECT_THAT(result.gradient.slice(tensor), ::testing::Each(0.0f)) << tensor.name;
    }
  }
}

// One stream where a node holds a letter and a number.
TEST(GeneralEngine, TakesNodesOfATokenAndNumbers) {
  FleetShape shape;
  shape.batch = 7;
  for (const char* preset : {"standard", "positional", "standard-rope"}) {
    for (const Wrap wrap : {Wrap::none, Wrap::scale}) {
      shape.spec = stream_spec(preset);
      shape.spec.wrap = wrap;
      SCOPED_TRACE(to_json(shape.spec));
      ASSERT_TRUE(general_supports(shape.spec));
      testing::check_engine(shape, {testing::random_slot(shape.spec, 5, 7, 5)}, tolerance(shape),
                            [](const FleetShape& s) { return make_general(s); });
    }
  }
}

TEST(GeneralEngine, TakesManyNodesAndCutsDeepProducts) {
  FleetShape shape;
  shape.spec.real_nodes = 70;
  shape.spec.heads = 1;
  shape.spec.width = 8;
  shape.spec.depth = 1;
  shape.spec.mlp_width = 40;
  shape.spec = resolve(shape.spec);
  shape.batch = 16;
  testing::check_engine(shape, {testing::random_slot(shape.spec, 5, 16, 70)}, tolerance(shape),
                        [](const FleetShape& s) { return make_general(s); });
}

// Models of tokens whose sizes take the kernels of many rows, of weights' gradients and of
// attention in one: the k-hop model and others, small.
ModelSpec token_model(AttentionSource attention, bool split_heads) {
  ModelSpec spec;
  spec.real_nodes = 64;
  spec.scratch_nodes = 1;
  spec.data_columns = 0;
  spec.vocabulary = spec.output_columns = 6;
  spec.loss = Loss::cross_entropy;
  spec.attention = attention;
  spec.encoding = Encoding::learned;
  spec.positions_added = attention != AttentionSource::positions;
  spec.width = spec.encoding_size = 24;
  spec.heads = 2;
  spec.depth = 1;
  spec.mlp_width = 36;
  spec.split_heads = split_heads;
  spec.join = Join::add;
  spec.activation = Activation::gelu_tanh;
  return spec;
}

void check_token_model(ModelSpec spec) {
  FleetShape shape;
  shape.spec = resolve(spec);
  SCOPED_TRACE(to_json(shape.spec));
  shape.batch = 15;
  shape.slots = 2;
  const std::vector<EngineSlot> slots = {testing::random_slot(shape.spec, 5, 15, 64),
                                         testing::random_slot(shape.spec, 6, 9, 50)};
  testing::check_engine(shape, slots, tolerance(shape),
                        [](const FleetShape& s) { return make_general(s); });
  shape.precision = Precision::tf32;
  shape.slots = 1;
  const auto engine = make_general(shape);
  const auto result = testing::run_engine(*engine, shape, {slots[0]});
  testing::expect_matches_reference(shape.spec, slots[0], result[0], tolerance(shape));
}

TEST(GeneralEngine, TakesCausalTokenModels) {
  ModelSpec spec = token_model(AttentionSource::data, true);
  spec.causal = true;
  check_token_model(spec);
  spec.attention = AttentionSource::positions;
  spec.positions_added = false;
  check_token_model(spec);
}

TEST(GeneralEngine, TakesTokenModelsWithoutACausalMask) {
  ModelSpec spec = token_model(AttentionSource::data, false);
  spec.normalisation = Normalisation::before;
  spec.tied_output = true;
  spec.rotation = Rotation::rope;
  spec.heads = 1;  // keys of 24, values of 24
  check_token_model(spec);
  spec = token_model(AttentionSource::data_and_positions, false);
  spec.positions_added = false;
  spec.encoding_size = 12;
  spec.heads = 3;  // keys of 36, values of 8
  spec.join = Join::concatenate;
  spec.normalisation = Normalisation::none;
  spec.activation = Activation::relu;
  check_token_model(spec);
}

// Deep enough for gradients whose places later layers take again while concurrent work may read
// them, and for those of an MLP's inner maps.
TEST(GeneralEngine, KeepsWhatConcurrentWorkReads) {
  FleetShape shape;
  shape.batch = 5;
  for (const char* preset : {"positional", "standard"}) {
    for (const Join join : {Join::concatenate, Join::add}) {
      for (int when = 0; when < 3; ++when) {
        ModelSpec spec;
        apply_preset(preset, spec);
        spec.real_nodes = 3;
        spec.width = spec.mlp_width = 8;
        spec.depth = 5;
        spec.mlp_depth = 3 + when;
        spec.join = join;
        spec.normalisation = static_cast<Normalisation>(when);
        shape.spec = resolve(spec);
        SCOPED_TRACE(to_json(shape.spec));
        const EngineSlot slot = testing::random_slot(shape.spec, 5, 5, 3);
        for (const int64_t budget : {general_attention_budget, int64_t{500}}) {
          const auto result = testing::run_engine(*make_general(shape, budget), shape, {slot});
          testing::expect_matches_reference(shape.spec, slot, result[0], tolerance(shape));
        }
      }
    }
  }
}

}  // namespace
}  // namespace posattn::cuda
