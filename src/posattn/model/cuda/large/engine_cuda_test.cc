// The large engine against the reference network.
#include <gtest/gtest.h>

#include <cstdlib>
#include <ostream>
#include <string>
#include <vector>

#include "posattn/model/cuda/large/engine.h"
#include "posattn/model/cuda/step/engine_harness_test.h"

namespace posattn::cuda {
namespace {

using testing::check_engine;
using testing::random_slot;

struct Case {
  std::string name = {};
  std::string preset = {};
  int length = 10, depth = 2;
  int64_t samples = 5;
  int width = 64, hidden = 64, heads = 2;
  Encoding encoding = Encoding::one_hot;
  bool rope = false;
  int scratch_nodes = 1;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

ModelSpec spec_of(const Case& c) {
  ModelSpec spec;
  apply_preset(c.preset, spec);
  spec.real_nodes = c.length;
  spec.depth = c.depth;
  spec.width = c.width;
  spec.mlp_width = c.hidden;
  spec.heads = c.heads;
  spec.encoding = c.encoding;
  spec.rope = c.rope;
  spec.scratch_nodes = c.scratch_nodes;
  return resolve(spec);
}

// tf32: rounding of single operands, and where it flips a ReLU.
double tolerance(Precision precision) { return precision == Precision::fp32 ? 2e-5 : 5e-2; }

void check_case(const Case& c, Precision precision) {
  const ModelSpec spec = spec_of(c);
  ASSERT_TRUE(fused_large_supports(spec));
  check_engine({spec, 1, c.samples, precision}, {random_slot(spec, 1, c.samples, c.length)},
               tolerance(precision), make_fused_large);
}

class FusedLarge : public ::testing::TestWithParam<Case> {};

TEST_P(FusedLarge, MatchesTheReference) { check_case(GetParam(), Precision::fp32); }

const std::vector<Case> cases = {
    {.name = "positional_10", .preset = "positional", .depth = 3, .samples = 18},
    {.name = "positional_17", .preset = "positional", .length = 17},
    {.name = "positional_33", .preset = "positional", .length = 33, .samples = 3},
    {.name = "positional_64", .preset = "positional", .length = 64, .samples = 2},
    {.name = "wide", .preset = "positional", .samples = 2, .width = 126, .hidden = 128, .heads = 3},
    {.name = "wide_33", .preset = "m1", .length = 33, .samples = 1, .width = 128, .hidden = 128},
    {.name = "narrow", .preset = "positional", .depth = 3, .width = 48, .hidden = 24, .heads = 4},
    {.name = "two_hidden", .preset = "positional", .length = 12, .hidden = 2},
    {.name = "one_head", .preset = "positional", .length = 12, .samples = 17, .heads = 1},
    {.name = "four_heads", .preset = "positional", .length = 15, .heads = 4},
    {.name = "one_layer", .preset = "positional", .length = 12, .depth = 1},
    {.name = "positions_in_input", .preset = "m1", .depth = 3},
    {.name = "binary", .preset = "m1", .length = 12, .encoding = Encoding::binary},
    {.name = "sinusoidal", .preset = "positional", .encoding = Encoding::sinusoidal},
    {.name = "random", .preset = "m1", .encoding = Encoding::random},
    {.name = "learned",
     .preset = "positional",
     .length = 20,
     .depth = 3,
     .encoding = Encoding::learned},
    {.name = "direct", .preset = "positional-direct", .length = 12, .depth = 3},
    {.name = "relative", .preset = "relative", .length = 12, .depth = 3},
    {.name = "rope", .preset = "positional", .length = 10, .rope = true},
    {.name = "rope_even", .preset = "positional", .length = 11, .rope = true},
    {.name = "no_scratch", .preset = "positional", .length = 16, .scratch_nodes = 0},
    {.name = "two_scratch", .preset = "positional", .length = 9, .scratch_nodes = 2},
    {.name = "standard_12", .preset = "standard", .length = 12, .depth = 3, .samples = 3},
    {.name = "standard_20", .preset = "standard", .length = 20},
    {.name = "standard_33", .preset = "standard", .length = 33, .samples = 2},
    {.name = "standard_wide",
     .preset = "standard",
     .length = 12,
     .samples = 1,
     .width = 128,
     .hidden = 128,
     .heads = 1},
    {.name = "standard_narrow",
     .preset = "standard",
     .length = 12,
     .width = 48,
     .hidden = 24,
     .heads = 1},
    {.name = "standard_one_layer", .preset = "standard", .length = 12, .depth = 1},
    {.name = "standard_random", .preset = "standard", .length = 12, .encoding = Encoding::random},
    {.name = "standard_no_scratch",
     .preset = "standard",
     .length = 16,
     .encoding = Encoding::binary,
     .scratch_nodes = 0},
    {.name = "values_alone", .preset = "m2", .depth = 3},
};
INSTANTIATE_TEST_SUITE_P(Specs, FusedLarge, ::testing::ValuesIn(cases),
                         [](const auto& tested) { return tested.param.name; });

int seeds() { return std::getenv("POSATTN_LONG_TESTS") ? 200 : 8; }

class FusedLargeOnRandomSpecs : public ::testing::TestWithParam<int> {};

// Sizes that fill no tile, in all combinations. The rounding of a folded bias is the same in every
// row, and shows in a gradient whose rows cancel: hence the wider tolerance.
TEST_P(FusedLargeOnRandomSpecs, AgreesWithTheReference) {
  RandomStream random(11, Purpose::test_data, 0, GetParam());
  const auto up_to = [&](int most) { return 1 + static_cast<int>(random.below(most)); };
  const char* const kinds[] = {"positional", "m1", "standard", "m2"};
  Case c{.preset = kinds[GetParam() % 4], .length = up_to(16), .depth = up_to(3)};
  c.heads = up_to(4);
  c.width = c.heads * up_to(16);
  c.hidden = up_to(40);
  c.scratch_nodes = static_cast<int>(random.below(3));
  const bool from_positions = c.preset == "positional";
  c.encoding = static_cast<Encoding>(random.below(from_positions ? 5 : 4));
  c.rope = from_positions && random.below(2) == 0;
  const ModelSpec spec = spec_of(c);
  SCOPED_TRACE(to_json(spec));
  ASSERT_TRUE(fused_large_supports(spec));
  const int64_t batch = 5 + up_to(13);
  check_engine({spec, 2, batch, Precision::fp32},
               {random_slot(spec, 1, batch, up_to(c.length)), random_slot(spec, 2, 5, c.length)},
               5e-5, make_fused_large);
}

INSTANTIATE_TEST_SUITE_P(Seeds, FusedLargeOnRandomSpecs, ::testing::Range(0, seeds()));

class FusedLargePrecision : public ::testing::TestWithParam<Precision> {};

// Slots that differ in weights, samples and length, and one that rests.
TEST_P(FusedLargePrecision, SlotsDoNotDependOnEachOther) {
  for (const char* preset : {"positional", "standard"}) {
    SCOPED_TRACE(preset);
    const ModelSpec spec = spec_of({.preset = preset, .length = 12, .width = 32, .hidden = 16});
    check_engine({spec, 4, 17, GetParam()},
                 {random_slot(spec, 6, 17, 12), random_slot(spec, 7, 0, 12),
                  random_slot(spec, 8, 3, 9), random_slot(spec, 9, 10, 3)},
                 tolerance(GetParam()), make_fused_large);
  }
}

INSTANTIATE_TEST_SUITE_P(Precisions, FusedLargePrecision,
                         ::testing::Values(Precision::fp32, Precision::tf32),
                         [](const auto& tested) {
                           return tested.param == Precision::fp32 ? "fp32" : "tf32";
                         });

TEST(FusedLargeTf32, MatchesTheReferenceInBothKindsOfAttention) {
  check_case({.preset = "positional", .length = 12, .depth = 3, .samples = 10}, Precision::tf32);
  check_case({.preset = "standard", .length = 12}, Precision::tf32);
  check_case({.preset = "standard", .length = 11, .width = 40, .hidden = 28}, Precision::tf32);
}

TEST(FusedLargeSupport, NamesItsShapes) {
  EXPECT_TRUE(fused_large_supports(spec_of({.preset = "positional", .length = 64})));
  EXPECT_TRUE(fused_large_supports(spec_of({.preset = "m2", .encoding = Encoding::learned})));
  EXPECT_FALSE(fused_large_supports(spec_of({.preset = "positional", .length = 65})));
  EXPECT_FALSE(fused_large_supports(spec_of({.preset = "positional", .width = 256})));
  EXPECT_FALSE(fused_large_supports(spec_of({.preset = "positional", .hidden = 256})));
  EXPECT_FALSE(fused_large_supports(spec_of({.preset = "standard-rope", .rope = true})));
  EXPECT_FALSE(fused_large_supports(spec_of({.preset = "m1", .encoding = Encoding::learned})));
  EXPECT_FALSE(fused_large_supports(spec_of({.preset = "m3"})));
  ModelSpec spec = spec_of({.preset = "positional"});
  spec.mlp_depth = 3;
  EXPECT_FALSE(fused_large_supports(spec));
}

TEST(FusedLargeBytes, CountsWhatGrows) {
  const ModelSpec spec = spec_of({.preset = "standard", .length = 32, .depth = 6});
  const FleetShape shape = {spec, 1, 1000, Precision::fp32};
  const int64_t one = fused_large_bytes(shape);
  // Activations and attention of a layer.
  EXPECT_GT(one, int64_t{6} * 1000 * 33 * (64 + 2 * 33) * 4);
  EXPECT_EQ(fused_large_bytes({spec, 3, 1000, Precision::fp32}), 3 * one);
}

}  // namespace
}  // namespace posattn::cuda
