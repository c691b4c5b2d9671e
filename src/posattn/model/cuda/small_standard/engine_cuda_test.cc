#include "posattn/model/cuda/small_standard/engines.h"
#include "posattn/model/cuda/step/engine_harness_test.h"
#include "posattn/model/cuda/step/engines.h"

namespace posattn::cuda {
namespace {

using testing::check_engine;
using testing::EngineResult;
using testing::EngineSlot;
using testing::random_slot;

ModelSpec standard_spec(int real_nodes, int depth) {
  ModelSpec spec;
  apply_preset("standard", spec);
  spec.real_nodes = real_nodes;
  spec.depth = depth;
  return resolve(spec);
}

double tolerance(Precision precision) { return precision == Precision::fp32 ? 2e-5 : 5e-2; }

// Two runs with their own weights and batches, one of which does not fill its last tile.
void check_fleet(const ModelSpec& spec, int64_t batch, Precision precision) {
  ASSERT_TRUE(fused_standard.supports(spec, Precision::fp32));
  const FleetShape shape = {spec, 2, batch, precision};
  check_engine(shape,
               {random_slot(spec, 1, batch, spec.real_nodes),
                random_slot(spec, 2, batch - 3, spec.real_nodes)},
               tolerance(precision), fused_standard.make);
}

class FusedStandard : public ::testing::TestWithParam<Precision> {};

TEST_P(FusedStandard, OfThePaper) { check_fleet(standard_spec(8, 4), 20, GetParam()); }

TEST_P(FusedStandard, SeveralGroups) { check_fleet(standard_spec(8, 2), 50, GetParam()); }

TEST_P(FusedStandard, FewerNodes) {
  for (const int real_nodes : {2, 3, 4}) {
    SCOPED_TRACE(real_nodes);
    check_fleet(standard_spec(real_nodes, 3), 17, GetParam());
  }
}

TEST_P(FusedStandard, OtherEncodings) {
  for (const Encoding encoding : {Encoding::binary, Encoding::sinusoidal, Encoding::random}) {
    SCOPED_TRACE(to_string(encoding));
    ModelSpec spec = standard_spec(6, 2);
    spec.encoding = encoding;
    spec.encoding_size = 0;
    check_fleet(resolve(spec), 16, GetParam());
  }
}

TEST_P(FusedStandard, WithoutPositions) {
  ModelSpec spec;
  apply_preset("m2", spec);
  spec.real_nodes = 8;
  spec.depth = 3;
  check_fleet(resolve(spec), 20, GetParam());
}

TEST_P(FusedStandard, WithoutScratchNode) {
  ModelSpec spec = standard_spec(7, 2);
  spec.scratch_nodes = 0;
  spec.encoding_size = 0;
  check_fleet(resolve(spec), 16, GetParam());
}

TEST_P(FusedStandard, LengthsAndRest) {
  const ModelSpec spec = standard_spec(8, 3);
  const FleetShape shape = {spec, 4, 16, GetParam()};
  check_engine(shape,
               {random_slot(spec, 1, 16, 3), random_slot(spec, 2, 0, 8), random_slot(spec, 3, 5, 8),
                random_slot(spec, 4, 16, 1)},
               tolerance(GetParam()), fused_standard.make);
}

// Blocks of one tile and of a whole group: the same bits. Slots of five tiles (the last not full),
// of two, and of none.
TEST_P(FusedStandard, SameBitsForAnyBlocks) {
  const ModelSpec spec = standard_spec(8, 2);
  const FleetShape shape = {spec, 3, 80, GetParam()};
  const std::vector<EngineSlot> slots = {random_slot(spec, 1, 78, 8), random_slot(spec, 2, 20, 5),
                                         random_slot(spec, 3, 0, 8)};
  const auto results = [&](const standard::BlockTiles& block_tiles) {
    return run_engine(*standard::make_engine_with(shape, block_tiles), shape, slots);
  };
  const std::vector<EngineResult> groups = results({3, 3}), tiles = results({1, 1});
  for (size_t slot = 0; slot < 2; ++slot) {
    SCOPED_TRACE(slot);
    expect_matches_reference(spec, slots[slot], groups[slot], tolerance(GetParam()));
    expect_same_bits(groups[slot], tiles[slot]);
  }
  EXPECT_TRUE(std::isnan(tiles[2].loss));
}

INSTANTIATE_TEST_SUITE_P(Precisions, FusedStandard,
                         ::testing::Values(Precision::fp32, Precision::tf32), [](const auto& test) {
                           return test.param == Precision::fp32 ? "fp32" : "tf32";
                         });

TEST(FusedStandardSupports, PaperShapesOnly) {
  const ModelSpec spec = standard_spec(8, 4);
  EXPECT_TRUE(fused_standard.supports(spec, Precision::fp32));
  ModelSpec other = spec;
  other.width = 32;
  EXPECT_FALSE(fused_standard.supports(other, Precision::fp32));
  other = spec;
  other.rotation = Rotation::rope;
  EXPECT_FALSE(fused_standard.supports(other, Precision::fp32));
  other = spec;
  other.encoding = Encoding::learned;
  EXPECT_FALSE(fused_standard.supports(other, Precision::fp32));
  EXPECT_FALSE(fused_standard.supports(standard_spec(9, 4), Precision::fp32));
  EXPECT_FALSE(fused_standard.supports(standard_spec(8, 1), Precision::fp32));
}

// On a GPU of 132 multiprocessors, with the paper's 1000 samples.
TEST(FusedStandardBlocks, FillTheDevice) {
  const ModelSpec spec = standard_spec(8, 4);
  const auto chosen = [&](int slots) {
    return standard::choose_block_tiles({spec, slots, 1000, Precision::fp32}, 132);
  };
  EXPECT_EQ(chosen(1).with_sums, 1);  // 63 blocks instead of 21
  EXPECT_EQ(chosen(6).with_sums, 3);  // 126 blocks are one round already
  EXPECT_EQ(chosen(7).with_sums, 1);  // 147 would be two
  EXPECT_EQ(chosen(50).with_sums, 3);
  EXPECT_EQ(chosen(1).without_sums, 1);
  EXPECT_EQ(chosen(50).without_sums, 3);
}

TEST(FusedStandardBytes, GrowsWithSlots) {
  const ModelSpec spec = standard_spec(8, 4);
  const int64_t one = fused_standard.bytes({spec, 1, 1000, Precision::fp32});
  EXPECT_GT(fused_standard.bytes({spec, 3, 1000, Precision::fp32}), 2 * one);
}

}  // namespace
}  // namespace posattn::cuda
