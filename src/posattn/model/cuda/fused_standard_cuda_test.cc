#include "posattn/model/cuda/engine_harness_test.h"
#include "posattn/model/cuda/fused_standard.h"

namespace posattn::cuda {
namespace {

using testing::check_engine;
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
  ASSERT_TRUE(fused_standard_supports(spec));
  const FleetShape shape = {spec, 2, batch, precision};
  check_engine(shape,
               {random_slot(spec, 1, batch, spec.real_nodes),
                random_slot(spec, 2, batch - 3, spec.real_nodes)},
               tolerance(precision), make_fused_standard);
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
               tolerance(GetParam()), make_fused_standard);
}

INSTANTIATE_TEST_SUITE_P(Precisions, FusedStandard,
                         ::testing::Values(Precision::fp32, Precision::tf32), [](const auto& test) {
                           return test.param == Precision::fp32 ? "fp32" : "tf32";
                         });

TEST(FusedStandardSupports, PaperShapesOnly) {
  const ModelSpec spec = standard_spec(8, 4);
  EXPECT_TRUE(fused_standard_supports(spec));
  ModelSpec other = spec;
  other.width = 32;
  EXPECT_FALSE(fused_standard_supports(other));
  other = spec;
  other.rope = true;
  EXPECT_FALSE(fused_standard_supports(other));
  other = spec;
  other.encoding = Encoding::learned;
  EXPECT_FALSE(fused_standard_supports(other));
  EXPECT_FALSE(fused_standard_supports(standard_spec(9, 4)));
  EXPECT_FALSE(fused_standard_supports(standard_spec(8, 1)));
}

TEST(FusedStandardBytes, GrowsWithSlots) {
  const ModelSpec spec = standard_spec(8, 4);
  const int64_t one = fused_standard_bytes({spec, 1, 1000, Precision::fp32});
  EXPECT_GT(fused_standard_bytes({spec, 3, 1000, Precision::fp32}), 2 * one);
}

}  // namespace
}  // namespace posattn::cuda
