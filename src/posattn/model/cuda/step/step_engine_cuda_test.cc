// Engines fail closed: whichever field of a spec changes, each engine refuses the model or agrees
// with the reference.
#include <gtest/gtest.h>

#include <algorithm>

#include "posattn/base/error.h"
#include "posattn/model/cuda/general/engine.h"
#include "posattn/model/cuda/step/engine_choice.h"
#include "posattn/model/cuda/step/engine_harness_test.h"
#include "posattn/model/cuda/step/engines.h"
#include "posattn/model/spec/perturbed_specs_test.h"
#include "posattn/model/spec/tensor_names.h"

namespace posattn::cuda {
namespace {

using posattn::testing::perturbed_specs;
using posattn::testing::PerturbedSpec;

const EngineRow general = {
    "general", [](const ModelSpec& spec, Precision) { return general_supports(spec); }, nullptr,
    general_bytes, [](const FleetShape& shape) { return make_general(shape); }};
const EngineRow* const engines[] = {&general, &fused_positional, &fused_standard, &fused_medium};

// fused-medium takes more in tf32.
Precision precision_of(const EngineRow& engine) {
  return &engine == &fused_medium ? Precision::tf32 : Precision::fp32;
}

ModelSpec spec_of(const char* preset, int width, int heads, int real_nodes = 0) {
  ModelSpec spec;
  apply_preset(preset, spec);
  // Positions as wide as x may be added to it.
  spec.real_nodes = real_nodes > 0 ? real_nodes : width == 4 ? 3 : 2;
  spec.width = spec.mlp_width = width;
  if (spec.two_streams()) spec.value_width = spec.value_mlp_width = width;
  spec.heads = heads;
  spec.depth = 2;
  spec.pair_columns = 2;
  spec.pair_classes = 3;
  return resolve(spec);
}

// Letters and numbers; gates and classes, by which more of it changes.
ModelSpec stream_spec(const char* preset, Loss loss) {
  ModelSpec spec;
  apply_preset(preset, spec);
  spec.real_nodes = 3;
  spec.vocabulary = spec.output_columns = 3;
  spec.tokens_and_values = true;
  spec.width = spec.mlp_width = 8;
  spec.value_width = 4;
  spec.value_mlp_width = spec.value_mlp_width > 0 ? 5 : 0;
  spec.depth = 2;
  spec.loss = loss;
  return resolve(spec);
}

// Tokens and classes, by which some fields may first change.
ModelSpec token_spec() {
  ModelSpec spec = spec_of("relative", 4, 2);
  spec.vocabulary = spec.output_columns = 3;
  spec.loss = Loss::cross_entropy;
  return resolve(spec);
}

void expect_agreement(const EngineRow& engine, const ModelSpec& spec) {
  FleetShape shape;
  shape.spec = spec;
  shape.precision = precision_of(engine);
  // More samples in tf32: rounding flips a ReLU of one or the other.
  const bool tf32 = shape.precision == Precision::tf32;
  shape.batch = tf32 ? 9 : 3;
  auto slot = testing::random_slot(spec, 11, shape.batch, spec.real_nodes);
  std::ranges::fill(slot.batch.mask, uint8_t{1});  // of so few outputs a random one may count none
  const auto made = engine.make(shape);
  EXPECT_STREQ(made->name(), engine.name);
  const auto result = testing::run_engine(*made, shape, {slot})[0];
  EXPECT_TRUE(result.loss > 0 || spec.loss == Loss::cross_entropy);  // of one class it is zero
  // Wide: a field that an engine overlooks changes far more, and MLPs of one unit cancel.
  testing::expect_matches_reference(spec, slot, result, tf32 ? 0.15 : 1e-3);
}

// Specs around these bases: two of the sizes that the fused engines take, and small ones.
void check_around(const std::vector<ModelSpec>& bases, const std::vector<std::string>& names) {
  for (const ModelSpec& base : bases) {
    std::vector<PerturbedSpec> specs = perturbed_specs(base);
    specs.push_back({"nothing", base});
    for (const auto& [field, spec] : specs) {
      SCOPED_TRACE(field + " changed: " + to_json(spec));
      for (const EngineRow* engine : engines) {
        if (std::ranges::find(names, engine->name) == names.end()) continue;
        if (engine->supports(spec, precision_of(*engine))) expect_agreement(*engine, spec);
      }
    }
  }
}

TEST(StepEngines, TheGeneralOneAgreesOrRefuses) {
  ModelSpec placed = spec_of("standard", 4, 2);
  placed.encoding = Encoding::sinusoidal;
  placed.encoding_size = 0;
  placed.position_range = 9;
  std::vector<ModelSpec> bases = {spec_of("positional", 4, 2),
                                  spec_of("standard", 4, 2),
                                  token_spec(),
                                  spec_of("kernel", 4, 2),
                                  spec_of("structural", 4, 2),
                                  spec_of("low-rank", 4, 2),
                                  spec_of("spiking", 4, 2),
                                  spec_of("two-streams", 4, 2),
                                  resolve(placed),
                                  stream_spec("two-streams-gated", Loss::squared_error),
                                  stream_spec("two-streams-gated", Loss::cross_entropy),
                                  stream_spec("two-streams-linear", Loss::squared_error)};
  bases[1].encoding = Encoding::learned;                    // of any size
  EXPECT_EQ(posattn::testing::fields_not_perturbed(bases),  // which routed models alone have
            std::set<std::string>{"route_places"});
  check_around(bases, {"general"});
}

TEST(StepEngines, ModelsOfTheProcessorAloneAreRefusedInWords) {
  ModelSpec linear = spec_of("two-streams", 64, 2);
  linear.kinds = "linear";
  const std::pair<ModelSpec, const char*> rows[] = {
      {spec_of("structural", 64, 2), "attention by pairs of nodes on the GPU"},
      {resolve(linear), "this combination of attention on the GPU"}};
  for (const auto& [spec, problem] : rows) {
    try {
      choose_engine(spec, Precision::fp32, Path::automatic, {});
      FAIL() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::configuration);
      EXPECT_EQ(error.problem(), problem);
    }
  }
}

TEST(StepEngines, TheFusedOnesAgreeOrRefuse) {
  const std::vector<ModelSpec> bases = {spec_of("positional", 64, 2), spec_of("standard", 64, 2)};
  EXPECT_TRUE(fused_positional.supports(bases[0], Precision::fp32));
  EXPECT_TRUE(fused_standard.supports(bases[1], Precision::fp32));
  check_around(bases, {"fused-positional", "fused-standard"});
}

TEST(StepEngines, TheOneForMoreNodesAgreesOrRefuses) {
  const std::vector<ModelSpec> bases = {spec_of("positional", 64, 2, 9),
                                        spec_of("standard", 64, 2, 9)};
  for (const ModelSpec& base : bases) EXPECT_TRUE(fused_medium.supports(base, Precision::tf32));
  check_around(bases, {"fused-medium"});
}

TEST(StepEngines, ModelsWithoutBiasesTakeTheFusedOnes) {
  FleetShape shape;
  shape.batch = 3;
  shape.spec = spec_of("homogeneous", 64, 2);
  EXPECT_STREQ(make_step_engine(shape, Path::automatic)->name(), "fused-positional");
  shape.spec = spec_of("standard-no-bias", 64, 2);
  EXPECT_STREQ(make_step_engine(shape, Path::automatic)->name(), "fused-standard");
  shape.spec = spec_of("homogeneous", 32, 2);
  EXPECT_STREQ(make_step_engine(shape, Path::automatic)->name(), "general");
}

// Where a weight is NaN, no ReLU, rounding or maximum may make a number of it: that a run diverged
// is seen by its loss.
TEST(StepEngines, ANanReachesTheLoss) {
  for (const char* preset : {"positional", "standard"}) {
    for (const int nodes : {2, 8, 9}) {
      FleetShape shape{.spec = spec_of(preset, 64, 2, nodes), .batch = 3};
      for (const Precision precision : {Precision::fp32, Precision::tf32}) {
        shape.precision = precision;
        for (const EngineRow* engine : engines) {
          if (!engine->supports(shape.spec, precision)) continue;
          SCOPED_TRACE(std::string(engine->name) + " " + preset + " " + std::to_string(nodes) +
                       (precision == Precision::tf32 ? " tf32" : " fp32"));
          testing::EngineSlot slot = testing::random_slot(shape.spec, 7, 3, nodes);
          const auto loss = [&] {
            return testing::run_engine(*engine->make(shape), shape, {slot})[0].loss;
          };
          EXPECT_TRUE(std::isfinite(loss()));
          slot.parameters[names::of_layer(0, names::mlp_map(0)) + ".bias"][5] =
              std::numeric_limits<float>::quiet_NaN();
          EXPECT_TRUE(std::isnan(loss()));
        }
      }
    }
  }
}

TEST(StepEngines, RoutedModelsAreRefusedInWords) {
  FleetShape shape;
  shape.spec.scores = Scores::routes;
  shape.spec = resolve(shape.spec);
  shape.batch = 3;
  for (const Path path : {Path::automatic, Path::plain, Path::folded}) {
    try {
      make_step_engine(shape, path);
      FAIL() << "a routed model must be refused";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::configuration);
      EXPECT_EQ(error.problem(), "a routed model on the GPU");
    }
  }
}

}  // namespace
}  // namespace posattn::cuda
