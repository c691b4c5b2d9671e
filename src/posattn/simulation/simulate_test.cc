#include "posattn/simulation/simulate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "posattn/base/error.h"
#include "posattn/simulation/choices.h"
#include "posattn/simulation/standard_model_test.h"

namespace posattn::simulation {
namespace {

using ::testing::HasSubstr;

std::string refusal(const Model& model, const SimulationOptions& options = {.samples = 100}) {
  try {
    simulate_standard(model, "model.safetensors", options);
  } catch (const Error& error) {
    return error.problem() + " / " + error.expected();
  }
  ADD_FAILURE() << "not refused";
  return {};
}

TEST(SimulateStandard, KeepsItsTolerance) {
  const Model original = testing::standard_model(3, 2, 2);
  const Simulation found =
      simulate_standard(original, "it", {.tolerance = 0.02, .samples = 300, .scales = {3}});
  ASSERT_EQ(found.scale_checks.size(), 1);
  EXPECT_LE(found.check.error, 0.02);
  EXPECT_GT(found.check.control, found.check.error);
  EXPECT_EQ(found.check.outside, 0);
  EXPECT_GT(found.scale_checks[0].outside, 0);
  EXPECT_EQ(found.model.origin.task, original.origin.task);
  EXPECT_EQ(found.model.origin.length, 3);
  EXPECT_EQ(found.model.spec.nodes(), 9);  // two copies of four nodes
  EXPECT_EQ(found.model.spec.depth, 2 * found.plan.layers() + 1);
  EXPECT_GT(found.bound, found.check.largest);
  EXPECT_EQ(found.layers.size(), 2);
  EXPECT_EQ(std::max(found.layers[0].units.most(), found.layers[1].units.most()),
            found.model.spec.mlp_width);
}

TEST(SimulateStandard, CopiesACausalModel) {
  const Model original = testing::standard_model(5, 2, 2, true);
  for (const int copies : {1, 4}) {
    const Simulation found =
        simulate_standard(original, "it", {.copies = copies, .table_size = 32, .samples = 300});
    EXPECT_LT(found.check.error, 0.01);
    EXPECT_GT(found.bound, found.check.largest);
  }
}

TEST(SimulateStandard, DefaultCopies) {
  EXPECT_EQ(default_copies(1), 1);
  EXPECT_EQ(default_copies(9), 3);
  EXPECT_EQ(default_copies(65), 8);
}

TEST(SimulateStandard, CalibratedWiderItFollowsFurther) {
  const Model original = testing::standard_model(3, 1, 2);
  SimulationOptions options{.table_size = 64, .samples = 300, .scales = {3}};
  const double narrow = simulate_standard(original, "it", options).scale_checks[0].error;
  options.scale = 3;
  const double wide = simulate_standard(original, "it", options).scale_checks[0].error;
  EXPECT_LT(wide, narrow / 3);
}

TEST(SimulateStandard, CopiesOneOfSeveralLengths) {
  Model model = testing::standard_model(5, 2, 2);
  SimulationOptions options{.length = 3, .table_size = 32, .samples = 300};
  EXPECT_THAT(refusal(model, options), HasSubstr("tested at length 3"));
  model.origin.variable_length = true;
  const Simulation shorter = simulate_standard(model, "it", options);
  EXPECT_EQ(shorter.plan.nodes, 4);
  EXPECT_EQ(shorter.model.spec.real_nodes, 3);
  EXPECT_EQ(shorter.model.origin.length, 3);
  EXPECT_FALSE(shorter.model.origin.variable_length);
  EXPECT_LT(shorter.check.error, 0.01);

  // Positions by a formula go on.
  model.spec.encoding = Encoding::sinusoidal;
  model.spec.encoding_size = 0;
  model.spec = resolve(model.spec);
  model.parameters = Parameters<float>(model.spec);
  initialise(model.parameters, 3);
  options.length = 7;
  const Simulation longer = simulate_standard(model, "it", options);
  EXPECT_EQ(longer.model.spec.real_nodes, 7);
  EXPECT_LT(longer.check.error, 0.01);
}

TEST(SimulateStandard, CopiesClasses) {
  const Simulation found =
      simulate_standard(testing::model_of({"one-hop", 5, true}, 2, 2), "it", {.samples = 300});
  EXPECT_TRUE(found.classes);
  EXPECT_LT(found.check.error, 0.01);
  EXPECT_GT(found.check.same_class, 0.9);
  EXPECT_NEAR(found.check.answers.copy, found.check.answers.original, 0.05);
  EXPECT_EQ(found.model.spec.loss, Loss::cross_entropy);
}

TEST(SimulateStandard, RefusesWhatItDoesNotKnow) {
  EXPECT_THAT(refusal(testing::model_of({"contextual-sum", 8, false}, 1, 2)),
              HasSubstr("none at nodes of tokens / positions at all nodes"));
  ModelSpec normalised = testing::standard_model(3, 1, 2).spec;
  normalised.normalisation = Normalisation::before;
  EXPECT_THAT(
      refusal(
          {normalised, Parameters<float>(normalised), {.task = "sort", .length = 3, .notes = {}}}),
      HasSubstr("LayerNorm between its layers"));

  for (const char* preset : {"positional", "m3", "hard", "standard-no-bias"}) {
    ModelSpec spec = testing::standard_model(3, 1, 2).spec;
    apply_preset(preset, spec);
    spec.encoding_size = 0;
    spec = resolve(spec);
    const Model other{spec, Parameters<float>(spec), {.task = "sort", .length = 3, .notes = {}}};
    EXPECT_THAT(refusal(other), HasSubstr("the paper's standard Transformer")) << preset;
  }
}

TEST(SimulateStandard, RefusesWhatRopeDoesNotAllow) {
  Model model = testing::rope_model(3, 1, 2, true);
  EXPECT_THAT(refusal(model, {.copies = 2, .samples = 100}), HasSubstr("2 copies of each node"));
  model.origin.variable_length = true;
  EXPECT_THAT(refusal(model, {.length = 2, .samples = 100}), HasSubstr("no scratch nodes"));
}

TEST(SimulateStandard, RefusesWhatWouldBeTooLarge) {
  const Model long_one = testing::standard_model(160, 1, 2);
  EXPECT_THAT(refusal(long_one, {.copies = 161, .samples = 100}),
              HasSubstr("25922 nodes: N k + 1"));
  const Model small = testing::standard_model(3, 1, 2);
  EXPECT_THAT(refusal(small, {.copies = 5, .samples = 100}), HasSubstr("1 to N = 4"));
  EXPECT_THAT(refusal(small, {.copies = 0, .samples = 100}), HasSubstr("0 copies"));
  EXPECT_THAT(refusal(testing::standard_model(3, 2, 2), {.table_size = 4096, .samples = 100}),
              HasSubstr("hidden units: 2 R K"));
}

TEST(SimulateStandard, RefusesOutputsThatDoNotVary) {
  Model model = testing::standard_model(3, 1, 2);
  std::ranges::fill(model.parameters[names::weight(names::decoding)], 0.0f);
  EXPECT_THAT(refusal(model), HasSubstr("all the same"));
}

}  // namespace
}  // namespace posattn::simulation
