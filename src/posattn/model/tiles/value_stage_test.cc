#include "posattn/model/tiles/value_stage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "posattn/model/spec/random_spec_test.h"

namespace posattn::engine {
namespace {

double largest_difference(std::span<const float> ours, std::span<const double> expected) {
  double worst = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(ours[i]) - expected[i]));
  }
  return worst;
}

double largest_number(std::span<const double> x) {
  double result = 0;
  for (const double value : x) result = std::max(result, std::abs(value));
  return result;
}

ModelSpec many_nodes(const char* preset, Encoding encoding) {
  ModelSpec spec;
  apply_preset(preset, spec);
  spec.real_nodes = ValueStage::fewest_nodes;
  spec.encoding = encoding;
  spec.encoding_size = encoding == Encoding::learned ? 5 : 0;
  spec.width = 12;
  spec.heads = 3;
  spec.mlp_width = 10;
  spec.depth = 2;
  return resolve(spec);
}

TEST(ValueStage, NeedsLessThanTheOtherStagesOverManyNodes) {
  for (const char* preset : {"positional", "standard"}) {
    SCOPED_TRACE(preset);
    ModelSpec spec;
    apply_preset(preset, spec);
    spec.real_nodes = ValueStage::fewest_nodes - 1;  // and a scratch node
    spec = resolve(spec);
    EXPECT_TRUE(ValueStage::supports(spec));
    const auto work = [](const ModelSpec& of, Path path) {
      return Network(of, {.path = path}).work().actual_per_sample;
    };
    EXPECT_LT(work(spec, Path::automatic), 0.8 * work(spec, Path::plain));
    EXPECT_LT(work(spec, Path::automatic), 0.9 * work(spec, Path::folded));
    spec.real_nodes -= 1;
    spec.encoding_size = 0;
    EXPECT_FALSE(ValueStage::supports(resolve(spec)));
  }
}

TEST(ValueStage, AgreesWithTheReference) {
  for (const ModelSpec& spec :
       {many_nodes("positional", Encoding::learned), many_nodes("relative", Encoding::one_hot),
        many_nodes("homogeneous", Encoding::sinusoidal), many_nodes("standard", Encoding::one_hot),
        many_nodes("standard", Encoding::learned), many_nodes("m2", Encoding::one_hot),
        many_nodes("m1", Encoding::sinusoidal)}) {
    SCOPED_TRACE(to_json(spec));
    const Parameters<float> parameters = testing::random_parameters(spec, 7);
    const Parameters<double> parameters64 = to_double(parameters);
    RandomStream random(41, Purpose::test_data, 0, 0);
    const testing::RandomBatch data(spec, 3, spec.real_nodes - 3, random);
    const std::vector<double> expected = reference_forward(spec, parameters64, data.reference());
    Parameters<double> gradient64(parameters64.shared_layout());
    const double loss64 =
        reference_gradient(spec, parameters64, data.reference(), data.mask, gradient64);

    Network network(spec, {.threads = 2, .tile = 2});
    std::vector<float> outputs(expected.size());
    network.forward(parameters, data.batch(), outputs);
    EXPECT_LT(largest_difference(outputs, expected), 1e-5 * largest_number(expected));
    Parameters<float> gradient(parameters.shared_layout());
    const double loss = network.gradient(parameters, data.batch(), data.mask, gradient);
    EXPECT_NEAR(loss, loss64, 1e-5 * loss64);
    std::vector<float> outputs_again(outputs.size());
    network.forward(parameters, data.batch(), outputs_again);
    EXPECT_EQ(outputs, outputs_again) << "a gradient between changes bits";
    const double scale = largest_number(gradient64.values());
    for (const TensorInfo& tensor : parameters.layout().tensors()) {
      const auto ours = gradient.slice(tensor);
      const auto theirs = gradient64.slice(tensor);
      EXPECT_LT(largest_difference(ours, theirs),
                2e-5 * std::max(largest_number(theirs), 0.05 * scale))
          << tensor.name;
    }
    Parameters<float> again(parameters.shared_layout());
    Network(spec, {.threads = 1, .tile = 2}).gradient(parameters, data.batch(), data.mask, again);
    EXPECT_TRUE(std::ranges::equal(gradient.values(), again.values())) << "threads change bits";
  }
}

// Few samples keep the factors of dA, many sum it tile by tile.
TEST(ValueStage, ManySamplesHaveTheMeanOfFewSamplesGradients) {
  const ModelSpec spec = many_nodes("positional", Encoding::sinusoidal);
  const Parameters<float> parameters = testing::random_parameters(spec, 8);
  constexpr int few = 25, parts = 4;
  RandomStream random(42, Purpose::test_data, 0, 0);
  const testing::RandomBatch data(spec, few * parts, spec.real_nodes, random);
  Network network(spec, {.threads = 2});
  Parameters<float> whole(parameters.shared_layout()), part(parameters.shared_layout());
  network.gradient(parameters, data.batch(), {}, whole);
  std::vector<double> mean(whole.values().size(), 0.0);
  for (int p = 0; p < parts; ++p) {
    const int64_t count = int64_t{few} * spec.real_nodes;
    const Batch batch{.inputs = std::span(data.inputs).subspan(p * count, count),
                      .targets = std::span(data.targets).subspan(p * count, count),
                      .samples = few,
                      .real_nodes = spec.real_nodes,
                      .tokens = {},
                      .labels = {}};
    network.gradient(parameters, batch, {}, part);
    for (size_t i = 0; i < mean.size(); ++i) {
      mean[i] += static_cast<double>(part.values()[i]) / parts;
    }
  }
  EXPECT_LT(largest_difference(whole.values(), mean), 1e-5 * largest_number(mean));
}

}  // namespace
}  // namespace posattn::engine
