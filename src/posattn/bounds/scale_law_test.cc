#include "posattn/bounds/scale_law.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "posattn/base/error.h"
#include "posattn/bounds/bias_scaling.h"
#include "posattn/model/spec/random_spec_test.h"
#include "posattn/model/spec/tensor_names.h"

namespace posattn::bounds {
namespace {

using posattn::testing::random_open_spec;
using posattn::testing::random_parameters;
using posattn::testing::RandomBatch;

ModelSpec spec_for_law(std::string_view preset) {
  ModelSpec spec;
  spec.real_nodes = 5;
  spec.width = spec.mlp_width = 8;
  spec.depth = 3;
  apply_preset(preset, spec);
  return resolve(spec);
}

// max |f(c x) - c g(x)| as a share of max |f(c x)| in double, g with other weights.
double law_missed_by(const ModelSpec& spec, const Parameters<double>& f,
                     const Parameters<double>& g, const RandomBatch& data, double c) {
  std::vector<double> inputs = data.inputs64;
  for (double& value : inputs) value *= c;
  ReferenceBatch large = data.reference(), small = data.reference();
  large.inputs = inputs;
  large.context.training = small.context.training = false;
  const std::vector<double> at_c = reference_forward(spec, f, large);
  const std::vector<double> at_1 = reference_forward(spec, g, small);
  double difference = 0, greatest = 0;
  for (size_t i = 0; i < at_c.size(); ++i) {
    difference = std::max(difference, std::abs(at_c[i] - c * at_1[i]));
    greatest = std::max(greatest, std::abs(at_c[i]));
  }
  return difference == 0 ? 0 : difference / greatest;  // a network may be dead: all outputs 0
}

// The statement itself: standard attention without biases, values alone in the input, inverse
// temperature beta: f(c x; beta) = c f(x; c^2 beta). Queries times c^2 are scores times c^2.
TEST(Cooling, ScalingTheInputIsScalingTheInverseTemperature) {
  for (const char* preset : {"m2", "m4"}) {  // without and with RoPE
    ModelSpec spec = spec_for_law(preset);
    spec.biases = Biases::none;
    Parameters<double> parameters = to_double(random_parameters(spec, 5));
    const int64_t size = spec.key_size();
    for (int layer = 0; layer < spec.depth; ++layer) {
      std::ranges::fill(parameters[names::of_layer(layer, names::bias(names::query_key))], 0.0);
    }
    RandomStream random(4, Purpose::test_data, 0, 0);
    const RandomBatch data(spec, 20, spec.real_nodes, random);
    for (const double c : {0.25, 3.0, 10.0}) {
      const auto with_queries_times = [&](double factor) {
        Parameters<double> changed = parameters;
        for (int layer = 0; layer < spec.depth; ++layer) {
          const auto weights = changed[names::of_layer(layer, names::weight(names::query_key))];
          for (size_t i = 0; i < weights.size(); ++i) {
            const bool query = static_cast<int64_t>(i) / spec.width % (2 * size) < size;
            weights[i] *= query ? factor : 1;
          }
        }
        return changed;
      };
      EXPECT_LT(law_missed_by(spec, parameters, with_queries_times(c * c), data, c), 1e-13);
      EXPECT_GT(law_missed_by(spec, parameters, with_queries_times(c), data, c), 1e-3);
      EXPECT_LT(law_missed_by(spec, parameters, cooled(spec, parameters, c), data, c), 1e-13);
    }
  }
}

TEST(Cooling, HoldsForThePresetsOfValuesAlone) {
  std::set<std::string> holds;
  for (const Preset& preset : presets()) {
    if (preset.name == "structural") continue;  // whose samples have pairs
    const ModelSpec spec = spec_for_law(preset.name);
    const Parameters<double> parameters = to_double(random_parameters(spec, 12));
    RandomStream random(3, Purpose::test_data, 0, 0);
    const RandomBatch data(spec, 20, spec.real_nodes, random);
    if (cooling_broken_by(spec)) {
      EXPECT_THROW(cooled(spec, parameters, 2), Error) << preset.name;
      continue;
    }
    if (scaling_broken_by(spec)) holds.insert(preset.name);
    for (const double c : {0.25, 3.0}) {
      const Parameters<double> cold = cooled(spec, parameters, c);
      EXPECT_LT(law_missed_by(spec, parameters, cold, data, c), 1e-13) << preset.name;
    }
  }
  EXPECT_THAT(holds, ::testing::IsSupersetOf({"m2", "m3", "m4"}));
}

TEST(Cooling, TendsToHardAttention) {
  ModelSpec spec = spec_for_law("m4");
  spec.scratch_nodes = 0;  // whose queries are zero: all scores alike
  spec.encoding_size = 0;
  spec.biases = Biases::none;
  spec = resolve(spec);
  Parameters<double> parameters = to_double(random_parameters(spec, 5));
  for (int layer = 0; layer < spec.depth; ++layer) {
    std::ranges::fill(parameters[names::of_layer(layer, names::bias(names::query_key))], 0.0);
  }
  RandomStream random(4, Purpose::test_data, 0, 0);
  const RandomBatch data(spec, 20, spec.real_nodes, random);
  ModelSpec hard = spec;
  hard.weighting = Weighting::hard;
  ReferenceBatch batch = data.reference();
  batch.context.training = false;
  const auto expected = reference_forward(hard, parameters, batch);
  const auto found = reference_forward(spec, cooled(spec, parameters, 1e6), batch);
  const auto warm = reference_forward(spec, parameters, batch);
  double difference = 0, before = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    difference = std::max(difference, std::abs(found[i] - expected[i]));
    before = std::max(before, std::abs(warm[i] - expected[i]));
  }
  EXPECT_LT(difference, 1e-9);
  EXPECT_GT(before, 1e-2);
}

// Random models of values alone and ReLUs, whatever their attention.
TEST(Cooling, HoldsForRandomModelsThatItDoesNotRefuse) {
  RandomStream random(6, Purpose::test_data, 0, 0);
  int held = 0;
  for (int i = 0; i < 4000; ++i) {
    const ModelSpec spec = random_open_spec(random);
    const RandomBatch data(spec, 3, spec.real_nodes, random);
    if (cooling_broken_by(spec) || !scaling_broken_by(spec)) continue;
    if (posattn::testing::is_drawn(spec)) continue;  // which node is largest may turn on rounding
    ++held;
    const Parameters<double> parameters = to_double(random_parameters(spec, i));
    EXPECT_LT(law_missed_by(spec, parameters, cooled(spec, parameters, 3.0), data, 3), 1e-11)
        << to_json(spec);
  }
  EXPECT_GT(held, 10);
}

ScaleLaw law_of_kind(const char* kind, Biases biases = Biases::none) {
  ModelSpec spec = spec_for_law("positional");
  spec.kinds = kind;
  spec.biases = biases;
  spec = resolve(spec);
  return scale_law({.spec = spec, .parameters = random_parameters(spec, 1), .origin = {}});
}

TEST(ScaleLaw, NamesTheDegreesOfKindsAndWhatBreaksThem) {
  for (const char* kind : {"positions", "relative", "cosine", "scaled"}) {
    const ScaleLaw law = law_of_kind(kind);
    EXPECT_EQ(law.layers.front().scores, 0) << kind;
    EXPECT_EQ(law.layers.front().attention, 0) << kind;
    EXPECT_EQ(law.broken_by, "") << kind;
  }
  const struct {
    const char* kind;
    std::optional<int> scores, attention;
  } rows[] = {{"data", 2, {}},
              {"data-and-positions", {}, {}},
              {"data score-bias=distance", {}, {}},
              {"hard score-bias=distance", {}, {}},
              {"rope", 2, {}}};
  for (const auto& row : rows) {
    const ScaleLaw law = law_of_kind(row.kind);
    EXPECT_EQ(law.layers.front().scores, row.scores) << row.kind;
    EXPECT_EQ(law.layers.front().attention, row.attention) << row.kind;
    EXPECT_THAT(law.broken_by, ::testing::HasSubstr("transformer_layers.0.attn.qk_proj.weight"));
  }
  EXPECT_EQ(law_of_kind("hard").layers.front().scores, 2);
  EXPECT_EQ(law_of_kind("hard").layers.front().attention, 0);
  const ScaleLaw mixed = law_of_kind("relative,data");
  EXPECT_EQ(mixed.layers[0].attention, 0);
  EXPECT_EQ(mixed.layers[1].attention, std::nullopt);
  EXPECT_THAT(mixed.broken_by, ::testing::HasSubstr("transformer_layers.1.attn.qk_proj.weight"));
  EXPECT_EQ(law_of_kind("positions", Biases::all).broken_by,
            "14 biases, which do not scale (encoding.bias, ...)");
}

// Whatever is inside: LayerNorm, GELU, positions in the input, every kind of attention.
TEST(ScaleLaw, TheWrapMakesEveryModelHomogeneous) {
  RandomStream random(7, Purpose::test_data, 0, 0);
  int held = 0;
  for (int i = 0; i < 300; ++i) {
    ModelSpec spec = random_open_spec(random);
    const RandomBatch data(spec, 3, spec.real_nodes, random);
    if (spec.vocabulary > 0 || spec.loss != Loss::squared_error) continue;
    spec.wrap = Wrap::scale;
    ++held;
    EXPECT_EQ(scaling_broken_by(spec), std::nullopt);
    const Parameters<double> parameters = to_double(random_parameters(spec, i));
    EXPECT_TRUE(
        std::ranges::equal(divide_biases(spec, parameters, 4).values(), parameters.values()));
    EXPECT_TRUE(std::ranges::equal(cooled(spec, parameters, 4).values(), parameters.values()));
    for (const double c : {1e-3, 8.0}) {
      EXPECT_LT(law_missed_by(spec, parameters, parameters, data, c), 1e-12) << to_json(spec);
    }
  }
  EXPECT_GT(held, 50);
}

}  // namespace
}  // namespace posattn::bounds
