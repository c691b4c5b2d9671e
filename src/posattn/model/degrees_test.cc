#include "posattn/model/degrees.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "posattn/base/error.h"

namespace posattn {
namespace {

using ::testing::HasSubstr;

Plan plan_of_preset(const char* preset) {
  ModelSpec spec;
  spec.depth = 2;
  spec.width = 8;
  apply_preset(preset, spec);
  return plan_of(resolve(spec));
}

TEST(Degrees, NameTheRuleThatIsBroken) {
  const struct {
    const char *preset, *broken_by;
  } rows[] = {
      {"positional", ""},
      {"scale-free", ""},
      {"tropical", ""},
      {"two-streams", ""},
      {"two-streams-gated", ""},
      {"two-streams-linear", ""},
      {"m1", "positions in the input, which do not scale with its values (encoding.weight)"},
      {"m2",
       "attention from the data: its scores change with the scale of the input "
       "(transformer_layers.0.attn.qk_proj.weight)"}};
  for (const auto& row : rows) {
    EXPECT_EQ(degrees_of(plan_of_preset(row.preset)).broken_by(), row.broken_by) << row.preset;
  }
}

TEST(Degrees, CollectTheBiasesOfDegreeOne) {
  const Plan plan = plan_of_preset("positional");
  std::vector<std::string> names;
  for (const TensorId id : degrees_of(plan).biases) names.push_back(plan.tensors.all()[id].name);
  EXPECT_EQ(names.size(), 10u);  // of the encoder, four in each of two layers, of the decoder
  EXPECT_THAT(names, ::testing::Contains("transformer_layers.1.attn.o_proj.bias"));
  EXPECT_THAT(names, ::testing::Not(::testing::Contains("transformer_layers.1.attn.qk_proj.bias")));
  EXPECT_THAT(degrees_of(plan_of_preset("two-streams-gated")).biases, ::testing::IsEmpty());
}

std::string refusal_of(const Plan& plan) {
  try {
    check_degrees(plan);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::configuration);
    return error.problem();
  }
  return "none";
}

TEST(Degrees, APlanOfTwoStreamsMustKeepThem) {
  const Plan plan = plan_of_preset("two-streams-gated");
  EXPECT_EQ(refusal_of(plan), "none");
  Plan biased = plan;
  biased.layers[1].values->output.bias = biased.layers[0].attention.value.bias;
  EXPECT_THAT(refusal_of(biased), HasSubstr("a bias of values"));
  biased = plan;
  biased.head.map.bias = biased.layers[0].attention.value.bias;
  EXPECT_THAT(refusal_of(biased), HasSubstr("a bias of values"));
  Plan unequal = plan;
  unequal.layers[0].attention.weighting = Weighting::max_plus;
  EXPECT_THAT(refusal_of(unequal), HasSubstr("values added to scores of the data"));
}

}  // namespace
}  // namespace posattn
