#include <gtest/gtest.h>

#include "posattn/model/cuda/step/engine_harness_test.h"
#include "posattn/model/cuda/step/padded_engine.h"

namespace posattn::cuda {
namespace {

using testing::EngineSlot;

FleetShape narrow_shape(const char* preset, int nodes, int depth, int mlp_width,
                        Precision precision) {
  FleetShape shape;
  apply_preset(preset, shape.spec);
  shape.spec.real_nodes = nodes;
  shape.spec.depth = depth;
  shape.spec.mlp_width = mlp_width;
  shape.spec = resolve(shape.spec);
  shape.batch = 18;
  shape.slots = 3;
  shape.precision = precision;
  return shape;
}

void check_narrow(const FleetShape& shape, const char* engine, double tolerance) {
  SCOPED_TRACE(to_json(shape.spec));
  EXPECT_STREQ(make_step_engine(shape, Path::automatic)->name(), engine);
  EXPECT_GT(step_engine_bytes(shape, Path::automatic), padding_bytes(shape));
  const int nodes = shape.spec.real_nodes;
  const std::vector<EngineSlot> slots = {testing::random_slot(shape.spec, 1, 18, nodes),
                                         testing::random_slot(shape.spec, 2, 0, nodes),  // rests
                                         testing::random_slot(shape.spec, 3, 7, nodes - 1)};
  testing::check_engine(shape, slots, tolerance,
                        [](const FleetShape& s) { return make_step_engine(s, Path::automatic); });
}

TEST(PaddedEngine, NarrowMlpsTakeTheEnginesOfThePapersSizes) {
  check_narrow(narrow_shape("positional", 4, 2, 63, Precision::fp32), "fused-positional", 1e-4);
  check_narrow(narrow_shape("standard", 4, 2, 1, Precision::fp32), "fused-standard", 1e-4);
  check_narrow(narrow_shape("standard", 8, 2, 16, Precision::tf32), "fused-standard", 0.1);
  check_narrow(narrow_shape("homogeneous", 10, 2, 16, Precision::fp32), "fused-medium", 1e-4);
  check_narrow(narrow_shape("standard", 8, 1, 16, Precision::tf32), "fused-medium", 0.1);
}

TEST(PaddedEngine, WiderMlpsAndOtherEnginesAreAsTheyAre) {
  const FleetShape wide = narrow_shape("positional", 4, 2, 96, Precision::fp32);
  EXPECT_EQ(padded_spec(wide.spec), wide.spec);
  EXPECT_STREQ(make_step_engine(wide, Path::automatic)->name(), "general");
  const FleetShape narrow = narrow_shape("positional", 4, 2, 16, Precision::fp32);
  EXPECT_STREQ(make_step_engine(narrow, Path::plain)->name(), "general");
}

}  // namespace
}  // namespace posattn::cuda
