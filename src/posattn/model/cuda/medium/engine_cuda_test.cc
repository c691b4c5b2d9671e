// The medium engine against the reference network.
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "posattn/model/cuda/step/engine_harness_test.h"
#include "posattn/model/cuda/step/engines.h"

namespace posattn::cuda {
namespace {

using testing::check_engine;
using testing::random_slot;

struct Case {
  std::string name = {};
  int length = 10, depth = 2;
  int64_t samples = 5;
  std::string preset = "positional";
  Encoding encoding = Encoding::one_hot;
  int scratch_nodes = 1;
  Precision precision = Precision::fp32;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

ModelSpec spec_of(const Case& c) {
  ModelSpec spec;
  apply_preset(c.preset, spec);
  spec.real_nodes = c.length;
  spec.depth = c.depth;
  spec.width = spec.mlp_width = 64;
  spec.heads = 2;
  spec.encoding = c.encoding;
  spec.scratch_nodes = c.scratch_nodes;
  return resolve(spec);
}

// tf32: rounding of single operands, and where it flips a ReLU.
double tolerance(Precision precision) { return precision == Precision::fp32 ? 2e-5 : 5e-2; }

void check_case(const Case& c, Precision precision) {
  const ModelSpec spec = spec_of(c);
  ASSERT_TRUE(fused_medium.supports(spec, precision));
  check_engine({spec, 1, c.samples, precision}, {random_slot(spec, 1, c.samples, c.length)},
               tolerance(precision), fused_medium.make);
}

class FusedMedium : public ::testing::TestWithParam<Case> {};

TEST_P(FusedMedium, MatchesTheReference) { check_case(GetParam(), GetParam().precision); }

constexpr Precision tf32 = Precision::tf32;

// Every number of sixteens of nodes, its first and last, and tiles that are not full.
const std::vector<Case> cases = {
    {.name = "nodes_10", .length = 9, .depth = 3, .samples = 14},
    {.name = "nodes_16_tf32", .length = 15, .samples = 9, .precision = tf32},
    {.name = "nodes_17", .length = 16, .samples = 8},
    {.name = "nodes_32_tf32", .length = 31, .samples = 5, .precision = tf32},
    {.name = "nodes_33", .length = 32, .samples = 4},
    {.name = "nodes_33_tf32", .length = 32, .samples = 4, .precision = tf32},
    {.name = "nodes_48", .length = 47, .samples = 3},
    {.name = "nodes_49_tf32", .length = 48, .samples = 3, .precision = tf32},
    {.name = "nodes_64", .length = 63, .samples = 2},
    {.name = "nodes_65", .length = 64, .samples = 2},
    {.name = "nodes_65_tf32", .length = 64, .samples = 3, .precision = tf32},
    {.name = "nodes_80_tf32", .length = 79, .samples = 1, .precision = tf32},
    {.name = "one_layer", .length = 12, .depth = 1},
    {.name = "no_biases", .length = 12, .preset = "homogeneous", .precision = tf32},
    {.name = "learned", .length = 20, .encoding = Encoding::learned, .precision = tf32},
    {.name = "direct", .length = 12, .preset = "positional-direct", .precision = tf32},
    {.name = "two_scratch", .length = 9, .scratch_nodes = 2, .precision = tf32},
    {.name = "relative", .length = 12, .preset = "relative"},
    {.name = "positions_in_input", .length = 20, .depth = 3, .preset = "m1"},
    {.name = "random_in_input",
     .length = 12,
     .preset = "m1",
     .encoding = Encoding::random,
     .precision = tf32},
    // Attention from data, the same numbers of nodes.
    {.name = "data_9", .length = 8, .samples = 17, .preset = "m2", .precision = tf32},
    {.name = "data_alone", .length = 12, .preset = "m2", .precision = tf32},
    {.name = "data_sinusoidal",
     .length = 12,
     .preset = "standard",
     .encoding = Encoding::sinusoidal,
     .precision = tf32},
    {.name = "data_10",
     .length = 9,
     .depth = 3,
     .samples = 16,
     .preset = "standard",
     .precision = tf32},
    {.name = "data_16", .length = 15, .samples = 9, .preset = "standard", .precision = tf32},
    {.name = "data_17", .length = 16, .samples = 9, .preset = "standard", .precision = tf32},
    {.name = "data_32", .length = 31, .samples = 5, .preset = "standard", .precision = tf32},
    {.name = "data_33",
     .length = 32,
     .depth = 3,
     .samples = 6,
     .preset = "standard",
     .precision = tf32},
    {.name = "data_18", .length = 17, .samples = 8, .preset = "standard", .precision = tf32},
    {.name = "data_49", .length = 48, .samples = 3, .preset = "standard", .precision = tf32},
    {.name = "data_65", .length = 64, .samples = 3, .preset = "standard", .precision = tf32},
    {.name = "data_72", .length = 71, .samples = 2, .preset = "standard", .precision = tf32},
    {.name = "data_80", .length = 79, .samples = 1, .preset = "standard", .precision = tf32},
    {.name = "data_one_layer", .length = 12, .depth = 1, .preset = "standard", .precision = tf32},
    {.name = "data_no_biases", .length = 12, .preset = "standard-no-bias", .precision = tf32},
    {.name = "data_two_scratch",
     .length = 9,
     .preset = "standard",
     .scratch_nodes = 2,
     .precision = tf32},
};
INSTANTIATE_TEST_SUITE_P(Specs, FusedMedium, ::testing::ValuesIn(cases),
                         [](const auto& tested) { return tested.param.name; });

class FusedMediumPrecision : public ::testing::TestWithParam<Precision> {};

// Slots that differ in weights, samples and length, and one that rests.
TEST_P(FusedMediumPrecision, SlotsDoNotDependOnEachOther) {
  const ModelSpec spec = spec_of({.length = 17});
  check_engine({spec, 4, 27, GetParam()},
               {random_slot(spec, 6, 27, 17), random_slot(spec, 7, 0, 17),
                random_slot(spec, 8, 3, 9), random_slot(spec, 9, 14, 3)},
               tolerance(GetParam()), fused_medium.make);
}

TEST(FusedMediumData, SlotsDoNotDependOnEachOther) {
  const ModelSpec spec = spec_of({.length = 17, .preset = "standard"});
  check_engine({spec, 4, 27, tf32},
               {random_slot(spec, 6, 27, 17), random_slot(spec, 7, 0, 17),
                random_slot(spec, 8, 3, 9), random_slot(spec, 9, 14, 3)},
               tolerance(tf32), fused_medium.make);
}

// Halves have a short range: weights of other magnitudes must not leave it.
TEST_P(FusedMediumPrecision, AnyMagnitude) {
  for (const float factor : {1e-3F, 4.0F}) {
    SCOPED_TRACE(factor);
    const ModelSpec spec = spec_of({.length = 12});
    auto slot = random_slot(spec, 3, 5, 12);
    for (float& x : slot.parameters.values()) x *= factor;
    check_engine({spec, 1, 5, GetParam()}, {slot}, tolerance(GetParam()), fused_medium.make);
  }
}

INSTANTIATE_TEST_SUITE_P(Precisions, FusedMediumPrecision,
                         ::testing::Values(Precision::fp32, Precision::tf32),
                         [](const auto& tested) {
                           return tested.param == Precision::fp32 ? "fp32" : "tf32";
                         });

TEST(FusedMediumSupport, NamesItsShapes) {
  const auto supports = [](const ModelSpec& spec) {
    return fused_medium.supports(spec, Precision::fp32);
  };
  EXPECT_TRUE(supports(spec_of({.length = 8})));
  EXPECT_FALSE(supports(spec_of({.length = 7})));
  EXPECT_TRUE(supports(spec_of({.length = 79})));
  EXPECT_FALSE(supports(spec_of({.length = 80})));
  EXPECT_FALSE(supports(spec_of({.preset = "standard"})));
  EXPECT_TRUE(fused_medium.supports(spec_of({.preset = "standard"}), tf32));
  EXPECT_TRUE(supports(spec_of({.preset = "m1"})));
  EXPECT_FALSE(supports(spec_of({.preset = "m1", .encoding = Encoding::learned})));
  EXPECT_FALSE(fused_medium.supports(spec_of({.preset = "m3"}), tf32));
  EXPECT_FALSE(fused_medium.supports(spec_of({.preset = "m4"}), tf32));
  ModelSpec spec = spec_of({});
  spec.rotation = Rotation::rope;
  EXPECT_FALSE(supports(resolve(spec)));
  spec.rotation = Rotation::none;
  spec.heads = 4;
  EXPECT_FALSE(supports(resolve(spec)));
}

}  // namespace
}  // namespace posattn::cuda
