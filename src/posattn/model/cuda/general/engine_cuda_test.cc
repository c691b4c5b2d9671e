// The general engine against the reference network over random specs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "posattn/model/cuda/general/engine.h"
#include "posattn/model/cuda/step/engine_harness_test.h"

namespace posattn::cuda {
namespace {

using testing::EngineSlot;

// A hidden unit near its ReLU's corner may fall on the other side in tf32, hence the width; and a
// norm of few columns divides by a deviation that may be small.
double tolerance(const FleetShape& shape) {
  if (shape.precision == Precision::tf32) return 0.2;
  return shape.spec.normalisation == Normalisation::none ? 3e-5 : 2e-4;
}

int seeds() { return std::getenv("POSATTN_LONG_TESTS") ? 200 : 16; }

// Three slots, of which one rests and one may have absent nodes, in fp32; then one of them in tf32
// and with scores that are computed again in chunks of a few samples.
void check_random(ModelSpec spec, int seed, RandomStream& random) {
  FleetShape shape;
  spec.depth = std::min(spec.depth, 2);
  shape.spec = resolve(spec);
  SCOPED_TRACE(to_json(shape.spec));
  shape.batch = 1 + random.below(17);
  shape.slots = 3;
  std::vector<EngineSlot> slots;
  for (int slot = 0; slot < shape.slots; ++slot) {
    const int64_t samples[] = {1 + random.below(static_cast<uint32_t>(shape.batch)), 0,
                               shape.batch};  // the second rests
    const int real_nodes = slot == 0 ? 1 + static_cast<int>(random.below(shape.spec.real_nodes))
                                     : shape.spec.real_nodes;
    slots.push_back(testing::random_slot(shape.spec, 10 * seed + slot, samples[slot], real_nodes));
  }
  testing::check_engine(shape, slots, tolerance(shape),
                        [](const FleetShape& s) { return make_general(s); });
  shape.slots = 1;
  for (const Precision precision : {Precision::tf32, Precision::fp32}) {
    SCOPED_TRACE(precision == Precision::tf32 ? "tf32, in chunks" : "fp32, in chunks");
    shape.precision = precision;
    const auto engine = make_general(shape, 3000);
    const auto result = testing::run_engine(*engine, shape, {slots[0]});
    testing::expect_matches_reference(shape.spec, slots[0], result[0], tolerance(shape));
  }
}

class GeneralEngineOnRandomSpecs : public ::testing::TestWithParam<int> {};

TEST_P(GeneralEngineOnRandomSpecs, AgreesWithTheReference) {
  const int seed = GetParam();
  RandomStream random(7, Purpose::test_data, 0, seed);
  ModelSpec spec = posattn::testing::random_spec(random);
  apply_preset(presets()[seed % presets().size()].name, spec);  // each of them
  spec.reach = 0;
  check_random(spec, seed, random);
}

TEST_P(GeneralEngineOnRandomSpecs, AgreesForAnyBlocks) {
  const int seed = GetParam();
  RandomStream random(7, Purpose::test_data, 1, seed);
  check_random(posattn::testing::random_open_spec(random), seed, random);
}

INSTANTIATE_TEST_SUITE_P(Seeds, GeneralEngineOnRandomSpecs, ::testing::Range(0, seeds()));

TEST(GeneralEngine, TakesManyNodesAndCutsDeepProducts) {
  FleetShape shape;
  shape.spec.real_nodes = 70;
  shape.spec.heads = 1;
  shape.spec.width = 8;
  shape.spec.depth = 1;
  shape.spec.mlp_width = 40;
  shape.spec = resolve(shape.spec);
  shape.batch = 16;
  testing::check_engine(shape, {testing::random_slot(shape.spec, 5, 16, 70)}, tolerance(shape),
                        [](const FleetShape& s) { return make_general(s); });
}

}  // namespace
}  // namespace posattn::cuda
