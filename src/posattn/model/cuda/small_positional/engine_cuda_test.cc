#include <gtest/gtest.h>

#include "posattn/model/cuda/small_positional/tile_engine.h"
#include "posattn/model/cuda/step/engine_harness_test.h"
#include "posattn/model/cuda/step/engines.h"

namespace posattn::cuda {
namespace {

using testing::check_engine;
using testing::EngineSlot;
using testing::expect_same_bits;
using testing::random_slot;
using testing::run_engine;

ModelSpec positional(int length, int depth) {
  ModelSpec spec;
  spec.real_nodes = length;
  spec.depth = depth;
  return resolve(spec);
}

FleetShape fleet(const ModelSpec& spec, int slots, int64_t batch, Precision precision) {
  return {spec, slots, batch, precision};
}

// Rounding of single operands, and where it flips a ReLU, is what differs from the reference.
double tolerance(Precision precision) { return precision == Precision::fp32 ? 2e-5 : 2e-2; }

class FusedPositional : public ::testing::TestWithParam<Precision> {};

TEST_P(FusedPositional, MatchesTheReferenceAtThePapersSize) {
  const ModelSpec spec = positional(8, 4);
  const FleetShape shape = fleet(spec, 1, 50, GetParam());
  check_engine(shape, {random_slot(spec, 1, 50, 8)}, tolerance(GetParam()), fused_positional.make);
}

TEST_P(FusedPositional, TakesSmallerModels) {
  for (const int length : {5, 4, 3, 2}) {
    SCOPED_TRACE(length);
    const ModelSpec spec = positional(length, 3);
    const FleetShape shape = fleet(spec, 1, 20, GetParam());
    check_engine(shape, {random_slot(spec, 2, 20, length)}, tolerance(GetParam()),
                 fused_positional.make);
  }
}

TEST_P(FusedPositional, TakesTwoLayersAndDirectAttention) {
  ModelSpec spec = positional(8, 2);
  check_engine(fleet(spec, 1, 16, GetParam()), {random_slot(spec, 3, 16, 8)}, tolerance(GetParam()),
               fused_positional.make);
  spec = positional(3, 3);
  spec.scores = Scores::direct;
  spec = resolve(spec);
  check_engine(fleet(spec, 1, 30, GetParam()), {random_slot(spec, 4, 30, 3)}, tolerance(GetParam()),
               fused_positional.make);
}

TEST_P(FusedPositional, TakesModelsWithoutScratchNode) {
  ModelSpec spec = positional(8, 2);
  spec.scratch_nodes = 0;
  spec.encoding_size = 0;
  spec = resolve(spec);
  check_engine(fleet(spec, 1, 16, GetParam()), {random_slot(spec, 5, 16, 8)}, tolerance(GetParam()),
               fused_positional.make);
}

// A P that is a formula and one that is stored; layer 1 the last or not; lengths that differ. (With
// tf32 and other seeds, rounding may flip the ReLU of a unit that P brings close to zero, and then
// in many samples at once.)
TEST_P(FusedPositional, TakesPositionsInTheInput) {
  struct Case {
    Encoding encoding;
    int length, depth, encoding_size;
  };
  for (const Case& c : {Case{Encoding::one_hot, 8, 3, 0}, Case{Encoding::sinusoidal, 3, 2, 6},
                        Case{Encoding::random, 7, 2, 4}}) {
    SCOPED_TRACE(to_string(c.encoding));
    ModelSpec spec;
    apply_preset("m1", spec);
    spec.real_nodes = c.length;
    spec.depth = c.depth;
    spec.encoding = c.encoding;
    spec.encoding_size = c.encoding_size;
    spec = resolve(spec);
    ASSERT_TRUE(fused_positional.supports(spec, Precision::fp32));
    const FleetShape shape = fleet(spec, 2, 20, GetParam());
    check_engine(shape,
                 {random_slot(spec, 21, 20, c.length), random_slot(spec, 22, 17, c.length - 1)},
                 tolerance(GetParam()), fused_positional.make);
  }
}

// Slots that differ in weights, samples and length, and one that rests.
TEST_P(FusedPositional, SlotsDoNotDependOnEachOther) {
  const ModelSpec spec = positional(4, 3);
  const FleetShape shape = fleet(spec, 4, 52, GetParam());
  check_engine(shape,
               {random_slot(spec, 6, 52, 4), random_slot(spec, 7, 0, 4),
                random_slot(spec, 8, 33, 3), random_slot(spec, 9, 20, 2)},
               tolerance(GetParam()), fused_positional.make);
}

// A fleet's size decides how many tiles a block adds up; a run's bits must not depend on it.
TEST_P(FusedPositional, TilesPerBlockDoNotChangeTheBits) {
  for (const int length : {8, 2}) {
    for (const int depth : {2, 3}) {
      SCOPED_TRACE(::testing::Message() << "length " << length << ", depth " << depth);
      const ModelSpec spec = positional(length, depth);
      const int batch = length == 8 ? 75 : 150;  // a group and two tiles more
      const FleetShape shape = fleet(spec, 1, batch, GetParam());
      const std::vector<EngineSlot> slots = {random_slot(spec, 10, batch, length)};
      const auto single = run_engine(*positional::make_engine_of(shape, true), shape, slots);
      const auto grouped = run_engine(*positional::make_engine_of(shape, false), shape, slots);
      expect_same_bits(single[0], grouped[0]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Precisions, FusedPositional,
                         ::testing::Values(Precision::fp32, Precision::tf32),
                         [](const auto& tested) {
                           return tested.param == Precision::fp32 ? "fp32" : "tf32";
                         });

TEST(FusedPositionalSupport, NamesItsShapes) {
  EXPECT_TRUE(fused_positional.supports(positional(8, 4), Precision::fp32));
  EXPECT_TRUE(fused_positional.supports(positional(2, 2), Precision::fp32));
  EXPECT_FALSE(fused_positional.supports(positional(9, 4), Precision::fp32));
  EXPECT_FALSE(fused_positional.supports(positional(8, 1), Precision::fp32));
  ModelSpec spec = positional(8, 4);
  spec.heads = 4;
  EXPECT_FALSE(fused_positional.supports(spec, Precision::fp32));
  spec = positional(8, 4);
  spec.encoding = Encoding::sinusoidal;
  spec.encoding_size = 64;
  EXPECT_FALSE(fused_positional.supports(spec, Precision::fp32));
  spec = positional(2, 3);
  spec.positions_in_input = true;
  spec.encoding = Encoding::binary;
  spec.encoding_size = 2;
  EXPECT_FALSE(fused_positional.supports(spec, Precision::fp32));
}

}  // namespace
}  // namespace posattn::cuda
