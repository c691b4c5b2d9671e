#include "posattn/model/network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "posattn/model/blocks/reference_network.h"
#include "posattn/model/spec/perturbed_specs_test.h"
#include "posattn/model/spec/random_spec_test.h"

namespace posattn {
namespace {

using testing::random_open_spec;
using testing::random_parameters;
using testing::random_spec;
using testing::RandomBatch;

int trials() { return std::getenv("POSATTN_LONG_TESTS") ? 2000 : 160; }

double largest(std::span<const double> x) {
  double result = 0;
  for (double v : x) result = std::max(result, std::abs(v));
  return result;
}

// Largest difference, relative to the largest entry.
template <class A>
double difference(const A& ours, std::span<const double> reference, double floor = 0) {
  double result = 0;
  for (size_t i = 0; i < reference.size(); ++i) {
    result = std::max(result, std::abs(static_cast<double>(ours[i]) - reference[i]));
  }
  return result / std::max(largest(reference), std::max(floor, 1e-30));
}

TEST(ReferenceNetwork, GradientIsTheDerivativeOfTheLoss) {
  for (int trial = 0; trial < trials() / 2; ++trial) {
    RandomStream random(1, Purpose::test_data, 0, trial);
    const ModelSpec spec = trial % 2 == 0 ? random_spec(random) : random_open_spec(random);
    SCOPED_TRACE(to_json(spec));
    if (testing::is_drawn(spec) || testing::has_signs(spec)) continue;  // step functions
    Parameters<double> parameters = to_double(random_parameters(spec, trial));
    const RandomBatch data(spec, 2, 1 + static_cast<int>(random.below(spec.real_nodes)), random);
    Parameters<double> gradient(parameters.shared_layout()), unused(parameters.shared_layout());
    reference_gradient(spec, parameters, data.reference(), data.mask, gradient);
    for (const TensorInfo& t : parameters.layout().tensors()) {
      if (!t.trained) continue;
      const int64_t i = t.offset + random.below(static_cast<uint32_t>(t.size));
      const double saved = parameters.values()[i];
      // A ReLU's corner may lie between the two points of one step, but hardly for two steps.
      double best = 1e30;
      for (const double h : {1e-5, 1e-7}) {
        double loss[2];
        for (int side = 0; side < 2; ++side) {
          parameters.values()[i] = saved + (side ? h : -h);
          loss[side] = reference_gradient(spec, parameters, data.reference(), data.mask, unused);
        }
        parameters.values()[i] = saved;
        best = std::min(best, std::abs((loss[1] - loss[0]) / (2 * h) - gradient.values()[i]));
      }
      EXPECT_LT(best, 1e-6 * (1 + std::abs(gradient.values()[i]))) << t.name;
    }
  }
}

TEST(Network, AgreesWithTheReferenceForEverySpecOnBothPaths) {
  for (int trial = 0; trial < trials(); ++trial) {
    // Not variant 0: there a ReLU of one draw lies at its corner, and the gradient in double jumps
    // by 0.4 % of its size when weights move by 1e-6 of theirs.
    RandomStream random(2, Purpose::test_data, 1, trial);
    const ModelSpec spec = trial % 2 == 0 ? random_spec(random) : random_open_spec(random);
    SCOPED_TRACE(to_json(spec));
    if (testing::has_signs(spec)) continue;
    const Parameters<float> parameters = random_parameters(spec, trial);
    const Parameters<double> parameters64 = to_double(parameters);
    const RandomBatch data(spec, 1 + random.below(40),
                           1 + static_cast<int>(random.below(spec.real_nodes)), random);
    const auto expected = reference_forward(spec, parameters64, data.reference());
    Parameters<double> expected_gradient(parameters64.shared_layout());
    const double expected_loss =
        reference_gradient(spec, parameters64, data.reference(), data.mask, expected_gradient);
    const double scale = largest(expected_gradient.values());
    // Rounding grows with the layers, and in the iterations of an inverse.
    const bool grows = spec.loops != "1" || spec.any_layer([](const AttentionChoices& kind) {
      return kind.weighting == Weighting::low_rank;
    });
    for (const Path path : {Path::plain, Path::folded}) {
      Network network(spec, {path, 2, 1 + static_cast<int>(random.below(9))});
      std::vector<float> outputs(expected.size());
      network.forward(parameters, data.batch(), outputs);
      EXPECT_LT(difference(outputs, expected), grows ? 1e-4 : 1e-5);
      Parameters<float> gradient(parameters.shared_layout());
      const double loss = network.gradient(parameters, data.batch(), data.mask, gradient);
      EXPECT_NEAR(loss, expected_loss, 1e-5 * (expected_loss + 1e-6));
      for (const TensorInfo& t : parameters.layout().tensors()) {
        // The key bias has gradient zero and one node attends to itself alone: compare with the
        // whole gradient's size.
        const double allowed = grows ? 1e-3 : 2e-5;
        EXPECT_LT(difference(gradient.slice(t), expected_gradient.slice(t), 0.05 * scale), allowed)
            << t.name;
      }
    }
  }
}

// Layers applied twice are an untied model of twice the layers with equal weights, whose gradients
// add up.
TEST(Network, LoopsAreAnUntiedModelWithEqualWeights) {
  for (const char* kinds : {"positions", "cosine", "relative,data"}) {
    ModelSpec tied;
    tied.kinds = kinds;
    tied.real_nodes = 5;
    tied.width = tied.mlp_width = 8;
    tied.depth = 2;
    tied.loops = "2";
    tied = resolve(tied);
    ModelSpec untied = tied;
    untied.depth = 4;
    untied.loops = "1";
    untied = resolve(untied);
    RandomStream random(12, Purpose::test_data, 0, 0);
    const RandomBatch data(tied, 6, 5, random);
    const Parameters<double> once = to_double(random_parameters(tied, 7));
    Parameters<double> twice(untied);
    const auto source = [](std::string name) {  // of a layer of the second time
      for (const char layer : {'2', '3'}) {
        const std::string here = std::string("layers.") + layer + ".";
        const size_t at = name.find(here);
        if (at != std::string::npos) name[at + 7] = static_cast<char>(layer - 2);
      }
      return name;
    };
    for (const TensorInfo& tensor : twice.layout().tensors()) {
      std::ranges::copy(once[source(tensor.name)], twice.slice(tensor).begin());
    }
    EXPECT_EQ(reference_forward(tied, once, data.reference()),
              reference_forward(untied, twice, data.reference()));
    Parameters<double> gradient(tied), summed(tied), separate(untied);
    const double loss = reference_gradient(tied, once, data.reference(), data.mask, gradient);
    EXPECT_EQ(reference_gradient(untied, twice, data.reference(), data.mask, separate), loss);
    for (const TensorInfo& tensor : separate.layout().tensors()) {
      const auto from = separate.slice(tensor);
      auto to = summed[source(tensor.name)];
      for (size_t i = 0; i < from.size(); ++i) to[i] += from[i];
    }
    EXPECT_LT(difference(gradient.values(), summed.values()), 1e-13) << kinds;
  }
}

// Whichever field of a spec changes, the engine that takes the model computes that model.
TEST(Network, EveryFieldCountsOnEveryPath) {
  ModelSpec positional, standard, tokens, kernel, pairs, low_rank, placed, spiking, streams;
  apply_preset("kernel", kernel);
  apply_preset("low-rank", low_rank);
  apply_preset("standard", standard);
  standard.encoding = Encoding::learned;
  apply_preset("relative", tokens);
  tokens.vocabulary = tokens.output_columns = 3;
  tokens.loss = Loss::cross_entropy;
  std::vector<ModelSpec> bases;
  apply_preset("standard", placed);
  placed.encoding = Encoding::sinusoidal;
  placed.position_range = 9;
  apply_preset("spiking", spiking);
  apply_preset("structural", pairs);
  pairs.pair_columns = 2;
  pairs.pair_classes = 3;
  apply_preset("two-streams", streams);
  for (ModelSpec spec :
       {positional, standard, tokens, kernel, pairs, low_rank, placed, spiking, streams}) {
    spec.real_nodes = 3;  // positions as wide as x may be added to it
    spec.width = spec.mlp_width = 4;
    if (spec.two_streams()) spec.value_width = spec.value_mlp_width = 4;
    spec.depth = 2;
    bases.push_back(resolve(spec));
  }
  EXPECT_EQ(testing::fields_not_perturbed(bases), std::set<std::string>{"route_places"});
  for (const ModelSpec& base : bases) {
    for (const auto& [field, spec] : testing::perturbed_specs(base)) {
      SCOPED_TRACE(field + " changed: " + to_json(spec));
      const Parameters<float> parameters = random_parameters(spec, 4);
      const Parameters<double> parameters64 = to_double(parameters);
      RandomStream random(8, Purpose::test_data, 0, 0);
      const RandomBatch data(spec, 4, spec.real_nodes, random);
      const auto expected = reference_forward(spec, parameters64, data.reference());
      for (const Path path : {Path::automatic, Path::plain, Path::folded}) {
        Network network(spec, {.path = path});
        std::vector<float> outputs(expected.size());
        network.forward(parameters, data.batch(), outputs);
        EXPECT_LT(difference(outputs, expected), 1e-5);
        if (spec.routed()) continue;
        Parameters<float> gradient(parameters.shared_layout());
        Parameters<double> gradient64(parameters64.shared_layout());
        const double loss =
            reference_gradient(spec, parameters64, data.reference(), data.mask, gradient64);
        EXPECT_NEAR(network.gradient(parameters, data.batch(), data.mask, gradient), loss,
                    1e-5 * (loss + 1e-6));
        EXPECT_LT(difference(gradient.values(), gradient64.values()), 3e-5);
      }
    }
  }
}

TEST(Network, AttentionAgreesWithTheReference) {
  for (int trial = 0; trial < trials() / 4; ++trial) {
    RandomStream random(3, Purpose::test_data, 0, trial);
    const ModelSpec spec = trial % 2 == 0 ? random_spec(random) : random_open_spec(random);
    SCOPED_TRACE(to_json(spec));
    if (testing::has_signs(spec)) continue;
    const Parameters<float> parameters = random_parameters(spec, trial);
    const RandomBatch data(spec, 1, spec.real_nodes, random);
    const auto expected = reference_attention(spec, to_double(parameters), data.reference());
    for (const Path path : {Path::plain, Path::folded}) {
      const auto ours = Network(spec, {path, 1, 0}).attention(parameters, data.batch());
      ASSERT_EQ(ours.size(), expected.size());
      EXPECT_LT(difference(ours, expected), 1e-5);
    }
  }
}

// More nodes than attention from data takes at once: blocks of rows.
TEST(Network, ManyNodes) {
  for (const char* preset : {"positional", "standard", "m3", "m4"}) {
    SCOPED_TRACE(preset);
    RandomStream random(4, Purpose::test_data, 0, 0);
    ModelSpec spec;
    spec.real_nodes = 180;
    spec.width = 8;
    spec.mlp_width = 12;
    spec.depth = 2;
    apply_preset(preset, spec);
    spec = resolve(spec);
    const Parameters<float> parameters = random_parameters(spec, 1);
    const Parameters<double> parameters64 = to_double(parameters);
    for (const int active : {180, 20}) {
      const RandomBatch data(spec, 3, active, random);
      Parameters<double> expected(parameters64.shared_layout());
      const double loss = reference_gradient(spec, parameters64, data.reference(), {}, expected);
      for (const Path path : {Path::automatic, Path::plain, Path::folded}) {
        Network network(spec, {path, 2, 2});
        Parameters<float> gradient(parameters.shared_layout());
        EXPECT_NEAR(network.gradient(parameters, data.batch(), {}, gradient), loss, 1e-5 * loss);
        EXPECT_LT(difference(gradient.values(), expected.values()), 2e-5);
      }
    }
  }
}

TEST(Network, SameBitsForAnyNumberOfThreads) {
  for (const char* preset : {"positional", "standard", "m3", "relu", "relu-rows", "hard",
                             "spiking-scores", "spiking", "tropical", "sums"}) {
    SCOPED_TRACE(preset);
    RandomStream random(5, Purpose::test_data, 0, 0);
    ModelSpec spec;
    spec.width = spec.mlp_width = 16;
    apply_preset(preset, spec);
    spec = resolve(spec);
    const Parameters<float> parameters = random_parameters(spec, 7);
    const RandomBatch data(spec, 333, 8, random);
    std::vector<float> first;
    double first_loss = 0;
    for (const int threads : {1, 2, 3, 8}) {
      Network network(spec, {Path::automatic, threads, 0});
      Parameters<float> gradient(parameters.shared_layout());
      const double loss = network.gradient(parameters, data.batch(), {}, gradient);
      const std::vector<float> now(gradient.values().begin(), gradient.values().end());
      if (first.empty()) {
        first = now;
        first_loss = loss;
      }
      EXPECT_EQ(first, now) << threads << " threads";
      EXPECT_EQ(first_loss, loss);
    }
  }
}

TEST(Network, CountsTheMultiplyAddsOfThePaperModels) {
  ModelSpec spec;
  apply_preset("positional", spec);
  spec = resolve(spec);
  EXPECT_EQ(Network(spec).work().nominal_per_sample, 9.0 * 4 * (20480 + 576));
  spec = ModelSpec{};
  apply_preset("standard", spec);
  spec = resolve(spec);
  const Network::Work work = Network(spec).work();
  EXPECT_EQ(work.nominal_per_sample, 9.0 * 4 * (36864 + 1728));
  EXPECT_LT(work.actual_per_sample, 0.5 * work.nominal_per_sample);
}

// Without biases f(c x) = c f(x), to the bit where c is a power of two; attention from data breaks
// it.
TEST(Network, ModelsWithoutBiasesAreHomogeneousWhereAttentionIsPositional) {
  for (const char* preset : {"homogeneous", "standard-no-bias"}) {
    for (const Path path : {Path::plain, Path::folded}) {
      ModelSpec spec;
      spec.width = spec.mlp_width = 16;
      apply_preset(preset, spec);
      spec = resolve(spec);
      const Parameters<float> parameters = random_parameters(spec, 3);
      RandomStream random(7, Purpose::test_data, 0, 0);
      const RandomBatch data(spec, 5, 8, random);
      std::vector<float> scaled = data.inputs;
      for (float& x : scaled) x *= 1024;
      Network network(spec, {.path = path});
      std::vector<float> once(data.targets.size()), large(once.size());
      network.forward(parameters, data.batch(), once);
      network.forward(parameters, {scaled, {}, data.samples, data.real_nodes}, large);
      int same = 0;
      for (size_t i = 0; i < once.size(); ++i) same += large[i] == 1024 * once[i];
      if (std::string_view(preset) == "homogeneous") {
        EXPECT_EQ(same, static_cast<int>(once.size()));
      } else {
        EXPECT_LT(same, static_cast<int>(once.size()) / 2);
      }
    }
  }
}

TEST(Network, NotANumberReachesTheLoss) {
  for (const char* preset : {"positional", "standard"}) {
    ModelSpec spec;
    apply_preset(preset, spec);
    spec = resolve(spec);
    Parameters<float> parameters = random_parameters(spec, 1);
    parameters["transformer_layers.1.attn.qk_proj.weight"][3] = NAN;
    RandomStream random(6, Purpose::test_data, 0, 0);
    const RandomBatch data(spec, 5, 8, random);
    Parameters<float> gradient(parameters.shared_layout());
    EXPECT_TRUE(std::isnan(Network(spec).gradient(parameters, data.batch(), {}, gradient)))
        << preset;
  }
}

}  // namespace
}  // namespace posattn
