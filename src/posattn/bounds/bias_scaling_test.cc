#include "posattn/bounds/bias_scaling.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "posattn/base/error.h"
#include "posattn/model/spec/perturbed_specs_test.h"
#include "posattn/model/spec/random_spec_test.h"

namespace posattn::bounds {
namespace {

using posattn::testing::perturbed_specs;
using posattn::testing::random_open_spec;
using posattn::testing::random_parameters;
using posattn::testing::RandomBatch;

ModelSpec small_spec(std::string_view preset) {
  ModelSpec spec;
  spec.real_nodes = 5;
  spec.width = spec.mlp_width = 8;
  spec.depth = 3;
  spec.pair_columns = 1;
  spec.pair_classes = 2;
  apply_preset(preset, spec);
  return resolve(spec);
}

template <class T>
std::vector<T> times(std::vector<T> values, double c) {
  for (T& value : values) value = static_cast<T>(value * c);
  return values;
}

// max |f_b(c x) - c g(x)| as a share of max |f_b(c x)|, where g has the biases divided by c as far
// as the model allows it, in double.
double relative_difference(const ModelSpec& spec, const Parameters<double>& original,
                           const Parameters<double>& divided, const RandomBatch& data, double c) {
  const std::vector<double> inputs = times(data.inputs64, c);
  ReferenceBatch large = data.reference(), small = data.reference();
  large.inputs = inputs;
  large.context.training = small.context.training = false;
  const std::vector<double> at_c = reference_forward(spec, original, large);
  const std::vector<double> at_1 = reference_forward(spec, divided, small);
  double difference = 0, greatest = 0;
  for (size_t i = 0; i < at_c.size(); ++i) {
    difference = std::max(difference, std::abs(at_c[i] - c * at_1[i]));
    greatest = std::max(greatest, std::abs(at_c[i]));
  }
  return difference == 0 ? 0 : difference / greatest;  // a network may be dead: all outputs 0
}

// Without asking whether the identity holds.
Parameters<double> divide_by_name(const Parameters<double>& parameters, double c,
                                  bool max_plus = false) {
  Parameters<double> divided = parameters;
  for (const TensorInfo& tensor : parameters.layout().tensors()) {
    const bool bias = tensor.name.ends_with(".bias") && !tensor.name.ends_with("qk_proj.bias");
    const bool table = max_plus && tensor.name.find("attn.relative") != std::string::npos;
    for (double& value : divided.slice(tensor)) value /= bias || table ? c : 1;
  }
  return divided;
}

TEST(BiasScaling, HoldsForThePresetsThatItNamesAndForNoOther) {
  std::set<std::string> holds;
  for (const Preset& preset : presets()) {
    const ModelSpec spec = small_spec(preset.name);
    const Parameters<double> parameters = to_double(random_parameters(spec, 11));
    const bool max_plus = spec.weighting == Weighting::max_plus;
    RandomStream random(3, Purpose::test_data, 0, 0);
    const RandomBatch data(spec, 20, spec.real_nodes, random);
    for (const double c : {0.25, 3.0, 1000.0}) {
      if (!scaling_broken_by(spec)) {
        holds.insert(preset.name);
        const Parameters<double> divided = divide_biases(spec, parameters, c);
        const Parameters<double> expected =
            spec.two_streams() ? parameters : divide_by_name(parameters, c, max_plus);
        EXPECT_TRUE(std::ranges::equal(divided.values(), expected.values()));
        EXPECT_LT(relative_difference(spec, parameters, divided, data, c), 1e-13) << preset.name;
      } else {
        EXPECT_THROW(divide_biases(spec, parameters, c), Error);
        EXPECT_GT(relative_difference(spec, parameters, divide_by_name(parameters, c), data, c),
                  1e-3)
            << preset.name << ", c = " << c;
      }
    }
  }
  EXPECT_THAT(holds, ::testing::UnorderedElementsAre(
                         "positional", "m5", "positional-direct", "relative", "homogeneous",
                         "scale-free", "scale-free-joint", "hard-rope", "hard-cosine", "relu-rows",
                         "spiking-scores", "tropical", "sums", "kernel", "structural",
                         "two-streams", "two-streams-gated", "two-streams-linear"));
}

// f(c x) = c f(x) without biases, for the kinds that have it and for no other.
TEST(BiasScaling, KindsAreHomogeneousAsTheirRowsSay) {
  const struct {
    const char* kind;
    bool homogeneous;
  } rows[] = {{"relu-rows", true},
              {"data weighting=relu_rows", true},
              {"data weighting=relu_rows score-bias=log", true},
              {"spiking-scores", true},
              {"data scores=signs score-bias=gray", true},
              {"data scores=signs score-bias=log weighting=hard", true},
              {"data scores=direction", true},
              {"hard-rope", true},
              {"hard-cosine", true},
              {"hard", true},
              {"sums", true},
              {"relative weighting=relu", true},
              {"cosine weighting=relu", true},
              {"data scores=signs weighting=sums", true},
              {"tropical score-bias=none", true},
              {"tropical score-bias=none weighting=hard", true},
              {"relu", false},
              {"data weighting=sums", false},
              {"data scores=tropical", false},
              {"tropical weighting=hard score-bias=gray", false},
              {"tropical score-bias=log", false},
              {"tropical score-bias=positions", false},
              {"tropical source-scale=sample score-bias=none", false},
              {"data weighting=max_plus", false},
              {"cosine weighting=max_plus", false},
              {"data scores=direction weighting=max_plus", false},
              {"positions weighting=max_plus", false},
              {"data-and-positions weighting=relu_rows", false},
              {"data-and-positions scores=signs", false}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.kind);
    ModelSpec spec = small_spec("homogeneous");
    spec.kinds = row.kind;
    spec = resolve(spec);
    EXPECT_EQ(!scaling_broken_by(spec), row.homogeneous) << scaling_broken_by(spec).value_or("");
    RandomStream random(3, Purpose::test_data, 0, 0);
    const RandomBatch data(spec, 20, spec.real_nodes, random);
    const Parameters<double> parameters = to_double(random_parameters(spec, 11));
    const double difference = relative_difference(spec, parameters, parameters, data, 3);
    if (row.homogeneous) {
      EXPECT_LT(difference, 1e-13);
    } else {
      EXPECT_GT(difference, 1e-3);
    }
  }
}

TEST(BiasScaling, SaysWhichDegreeWeightsOfScoresHave) {
  EXPECT_THAT(*scaling_broken_by(small_spec("relu")), ::testing::HasSubstr("degree 3"));
  EXPECT_THAT(*scaling_broken_by(small_spec("spiking")),
              ::testing::HasSubstr("neurons that fire at a threshold"));
  ModelSpec spec = small_spec("positional");
  spec.kinds = "data scores=tropical weighting=relu";
  EXPECT_THAT(*scaling_broken_by(resolve(spec)), ::testing::HasSubstr("L layers 2^L"));
}

// Without any bias f(c x) = c f(x), or not, kind by kind.
TEST(BiasScaling, KindsOfScoresAreHomogeneousWhereTheySaySo) {
  const std::pair<const char*, bool> rows[] = {
      {"data scores=unit score-bias=alibi", true},
      {"data scores=unit score-bias=kerple", true},
      {"data scores=unit score-bias=fire", true},
      {"data scores=unit score-bias=buckets", true},
      {"data source-scale=sample score-bias=alibi", true},
      {"data scores=unit score-bias=kerple score-window=3", true},
      {"data scores=unit score-window=5", true},
      {"data weighting=kernel features=6", true},
      {"rope weighting=kernel features=6 score-bias=kerple", true},
      {"hard", true},
      {"data score-bias=alibi", false},
      {"data score-bias=kerple", false},
      {"data score-bias=fire", false},
      {"data score-bias=buckets", false},
      {"data score-window=3", false},
      {"hard score-window=3", false},
      {"hard score-bias=kerple", false},
      {"data-and-positions weighting=kernel features=6", false},
      {"dape", false},
  };
  for (const auto& [kind, holds] : rows) {
    for (const bool causal : {false, true}) {
      ModelSpec spec;
      spec.kinds = kind;
      spec.real_nodes = 6;
      spec.width = spec.mlp_width = 8;
      spec.depth = 2;
      spec.causal = causal;
      spec.biases = Biases::none;
      spec = resolve(spec);
      EXPECT_EQ(!scaling_broken_by(spec), holds) << kind;
      Parameters<double> parameters = to_double(random_parameters(spec, 5));
      for (const TensorInfo& tensor : parameters.layout().tensors()) {
        const bool scales =
            tensor.name.ends_with("qk_proj.bias") && spec.source_scale == SourceScale::none;
        if (scales) std::ranges::fill(parameters.slice(tensor), 0.0);
      }
      RandomStream random(4, Purpose::test_data, 0, 0);
      const RandomBatch data(spec, 20, spec.real_nodes, random);
      const double c = holds ? 3 : 1000;  // the largest score may stay the largest for a while
      const double difference = relative_difference(spec, parameters, parameters, data, c);
      if (holds) {
        EXPECT_LT(difference, 1e-13) << kind;
      } else {
        EXPECT_GT(difference, 1e-4) << kind;
      }
    }
  }
}

TEST(BiasScaling, HoldsForRandomModelsThatItDoesNotRefuse) {
  RandomStream random(5, Purpose::test_data, 0, 0);
  int held = 0;
  for (int i = 0; i < 4000; ++i) {
    const ModelSpec spec = random_open_spec(random);
    const RandomBatch data(spec, 3, spec.real_nodes, random);
    if (scaling_broken_by(spec)) continue;
    ++held;
    const Parameters<double> parameters = to_double(random_parameters(spec, i));
    EXPECT_LT(relative_difference(spec, parameters, divide_biases(spec, parameters, 7.0), data, 7),
              1e-12)
        << to_json(spec);
  }
  EXPECT_GT(held, 30);
}

// To the bit in float where c is a power of two, in both ways of computing.
TEST(BiasScaling, IsExactInFloatForPowersOfTwo) {
  const ModelSpec spec = small_spec("positional");
  const Parameters<float> parameters = random_parameters(spec, 2);
  const Parameters<float> divided = divide_biases(spec, parameters, 512);
  RandomStream random(9, Purpose::test_data, 0, 0);
  const RandomBatch data(spec, 10, spec.real_nodes, random);
  const std::vector<float> large = times(data.inputs, 512);
  for (const Path path : {Path::plain, Path::folded}) {
    Network network(spec, {.path = path});
    std::vector<float> at_c(data.targets.size()), at_1(at_c.size());
    network.forward(parameters, {large, {}, data.samples, data.real_nodes}, at_c);
    network.forward(divided, {data.inputs, {}, data.samples, data.real_nodes}, at_1);
    EXPECT_EQ(at_c, times(at_1, 512));
  }
}

TEST(BiasScaling, InfinityRemovesTheBiases) {
  const ModelSpec spec = small_spec("positional");
  const Parameters<double> parameters = to_double(random_parameters(spec, 2));
  const Parameters<double> without = divide_biases(spec, parameters, INFINITY);
  for (const TensorInfo& tensor : parameters.layout().tensors()) {
    const bool scaled = tensor.name.ends_with(".bias") && !tensor.name.ends_with("qk_proj.bias");
    if (scaled) {
      EXPECT_THAT(without.slice(tensor), ::testing::Each(0)) << tensor.name;
    } else {
      EXPECT_TRUE(std::ranges::equal(without.slice(tensor), parameters.slice(tensor)));
    }
  }
  for (const double c : {0.0, -1.0, std::nan("")}) {
    EXPECT_THROW(divide_biases(spec, parameters, c), Error);
  }
}

// Whatever a field may be: either it is refused, or the identity holds.
TEST(BiasScaling, FailsClosed) {
  ModelSpec with_random_positions = small_spec("positional");
  with_random_positions.encoding = Encoding::random;  // which may be added to the input
  std::vector<posattn::testing::PerturbedSpec> specs = perturbed_specs(small_spec("positional"));
  for (auto& perturbed : perturbed_specs(with_random_positions)) specs.push_back(perturbed);
  std::set<std::string> refused;
  for (const auto& [field, spec] : specs) {
    if (scaling_broken_by(spec)) {
      refused.insert(field);
      continue;
    }
    if (spec.routed()) continue;  // attention is not made of weights drawn at random
    RandomStream random(8, Purpose::test_data, 0, 0);
    const RandomBatch data(spec, 2, spec.real_nodes, random);
    const Parameters<double> parameters = to_double(random_parameters(spec, 1));
    EXPECT_LT(relative_difference(spec, parameters, divide_biases(spec, parameters, 5.0), data, 5),
              1e-12)
        << field;
  }
  EXPECT_THAT(refused, ::testing::UnorderedElementsAre("attention", "kinds", "positions_in_input",
                                                       "normalisation", "activation", "vocabulary",
                                                       "positions_added", "weighting"));
}

}  // namespace
}  // namespace posattn::bounds
