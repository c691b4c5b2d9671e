#include "posattn/model/spec/parameters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace posattn {
namespace {

ModelSpec spec_of(const char* preset, Encoding encoding = Encoding::one_hot) {
  ModelSpec spec;
  apply_preset(preset, spec);
  spec.encoding = encoding;
  spec.pair_classes = 2;
  return resolve(spec);
}

// The authors' models at n = 8, width 64, depth 4.
TEST(Parameters, KnownCounts) {
  EXPECT_EQ(ParameterLayout(spec_of("positional")).parameter_count(), 84577);
  EXPECT_EQ(ParameterLayout(spec_of("standard")).parameter_count(), 150273);
}

TEST(Parameters, NamesAndShapesOfTheAuthors) {
  const ParameterLayout layout(spec_of("positional"));
  using Shape = std::vector<int64_t>;
  EXPECT_EQ(layout.tensors().size(), 2u + 4 * 10 + 2);
  EXPECT_EQ(layout.at("encoding.weight").shape, (Shape{64, 1}));
  EXPECT_EQ(layout.at("transformer_layers.3.attn.qk_proj.weight").shape, (Shape{36, 9}));
  EXPECT_EQ(layout.at("transformer_layers.3.attn.qk_proj.bias").shape, Shape{36});
  EXPECT_EQ(layout.at("transformer_layers.0.attn.o_proj.weight").shape, (Shape{64, 64}));
  EXPECT_EQ(layout.at("transformer_layers.0.mlp.mlp.0.weight").shape, (Shape{64, 128}));
  EXPECT_EQ(layout.at("transformer_layers.0.mlp.mlp.2.bias").shape, Shape{64});
  EXPECT_EQ(layout.at("decoding.weight").shape, (Shape{1, 64}));
  EXPECT_THROW(layout.at("transformer_layers.4.attn.v_proj.bias"), std::out_of_range);
}

TEST(Parameters, VariantsHaveTheirTensors) {
  using Shape = std::vector<int64_t>;
  const ParameterLayout direct(spec_of("positional-direct"));
  EXPECT_EQ(direct.at("transformer_layers.0.attn.scores").shape, (Shape{2, 9, 9}));
  EXPECT_THROW(direct.at("transformer_layers.0.attn.qk_proj.weight"), std::out_of_range);

  ModelSpec deep = spec_of("positional");
  deep.mlp_depth = 3;
  deep.mlp_width = 10;
  const ParameterLayout layout(deep);
  EXPECT_EQ(layout.at("transformer_layers.0.mlp.mlp.2.weight").shape, (Shape{10, 10}));
  EXPECT_EQ(layout.at("transformer_layers.0.mlp.mlp.4.weight").shape, (Shape{64, 10}));

  for (const Encoding encoding : {Encoding::random, Encoding::learned}) {
    const TensorInfo positions =
        ParameterLayout(spec_of("positional", encoding)).at("positions.weight");
    EXPECT_EQ(positions.shape, (Shape{9, 9}));
    EXPECT_EQ(positions.trained, encoding == Encoding::learned);
  }
  EXPECT_THROW(ParameterLayout(spec_of("m2", Encoding::random)).at("positions.weight"),
               std::out_of_range);
}

TEST(Parameters, TensorsAreAlignedAndApart) {
  for (const Preset& preset : presets()) {
    const ParameterLayout layout(spec_of(preset.name.c_str(), Encoding::learned));
    int64_t end = 0;
    for (const TensorInfo& tensor : layout.tensors()) {
      EXPECT_EQ(tensor.offset % 16, 0);
      EXPECT_GE(tensor.offset, end);
      end = tensor.offset + tensor.size;
    }
    EXPECT_GE(layout.buffer_size(), end);
  }
}

TEST(Parameters, InitialValuesKeepTheAuthorsBounds) {
  Parameters<float> parameters(spec_of("standard"));
  initialise(parameters, 1);
  const auto largest = [&](const char* name) {
    float most = 0;
    for (const float value : parameters[name]) most = std::max(most, std::abs(value));
    return most;
  };
  // The stacked query-key matrix [256, 64] counts as one.
  const float xavier = std::sqrt(6.0f / (256 + 64));
  EXPECT_LE(largest("transformer_layers.1.attn.qk_proj.weight"), xavier);
  EXPECT_GT(largest("transformer_layers.1.attn.qk_proj.weight"), 0.99f * xavier);
  EXPECT_EQ(largest("transformer_layers.1.attn.qk_proj.bias"), 0);
  EXPECT_EQ(largest("transformer_layers.1.attn.o_proj.bias"), 0);
  const float fan_in = 1 / std::sqrt(128.0f);
  EXPECT_LE(largest("transformer_layers.1.mlp.mlp.0.weight"), fan_in);
  EXPECT_GT(largest("transformer_layers.1.mlp.mlp.0.weight"), 0.99f * fan_in);
  EXPECT_LE(largest("transformer_layers.1.mlp.mlp.0.bias"), fan_in);
  EXPECT_GT(largest("transformer_layers.1.mlp.mlp.0.bias"), 0.8f * fan_in);
}

TEST(Parameters, InitialValuesDependOnTheSeedAlone) {
  const ModelSpec spec = spec_of("positional", Encoding::random);
  Parameters<float> first(spec), second(spec), other(spec);
  initialise(first, 7);
  initialise(second, 7);
  initialise(other, 8);
  EXPECT_TRUE(std::ranges::equal(first.values(), second.values()));
  for (const char* name : {"positions.weight", "decoding.weight"}) {
    EXPECT_FALSE(std::ranges::equal(first[name], other[name])) << name;
  }
  EXPECT_FALSE(std::ranges::equal(first["transformer_layers.0.attn.v_proj.weight"],
                                  first["transformer_layers.1.attn.v_proj.weight"]));
}

TEST(Parameters, InitialValuesOfGptAreSmallAndBiasesZero) {
  ModelSpec spec;
  spec.width = 64;
  spec.depth = 3;
  spec.vocabulary = 20;
  spec.tied_output = true;
  spec.output_columns = 20;
  spec.join = Join::add;
  spec.normalisation = Normalisation::before;
  Parameters<float> parameters(resolve(spec));
  initialise(parameters, 5, InitialValues::gpt);
  for (const TensorInfo& tensor : parameters.layout().tensors()) {
    double squares = 0;
    for (const double value : parameters.slice(tensor)) squares += value * value;
    const double deviation = std::sqrt(squares / static_cast<double>(tensor.size));
    const bool gain = tensor.name.ends_with("norm.weight");
    const bool ends =
        tensor.name.ends_with("o_proj.weight") || tensor.name.ends_with("mlp.2.weight");
    const double expected = gain                      ? 1.0
                            : tensor.shape.size() < 2 ? 0.0
                            : ends                    ? 0.02 / std::sqrt(6.0)
                                                      : 0.02;
    EXPECT_NEAR(deviation, expected, 0.15 * expected) << tensor.name;
  }
}

TEST(Parameters, RandomEncodingHasRowsOfAboutUnitNorm) {
  ModelSpec spec;
  spec.real_nodes = 99;
  spec.encoding = Encoding::random;
  Parameters<float> parameters(resolve(spec));
  initialise(parameters, 3);
  double sum = 0;
  for (const float value : parameters["positions.weight"]) sum += double{value} * value;
  EXPECT_NEAR(sum / 100, 1, 0.05);
}

TEST(Parameters, PositionsByFormulaOrStored) {
  const ModelSpec stored = spec_of("positional", Encoding::learned);
  Parameters<float> parameters(stored);
  initialise(parameters, 5);
  EXPECT_TRUE(std::ranges::equal(positions_of(stored, parameters), parameters["positions.weight"]));
  EXPECT_TRUE(std::ranges::equal(positions_of(stored, to_double(parameters)),
                                 parameters["positions.weight"]));

  const ModelSpec formula = spec_of("positional", Encoding::binary);
  EXPECT_TRUE(std::ranges::equal(positions_of(formula, Parameters<float>(formula)),
                                 formula_positions(formula)));
}

}  // namespace
}  // namespace posattn
