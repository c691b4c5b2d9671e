// Which engine a card gets, and that what it gets runs within the card's shared memory: the
// emulator pretends each card.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "emulator.h"
#include "posattn/base/error.h"
#include "posattn/base/random.h"
#include "posattn/kernels/cuda/attention.h"
#include "posattn/kernels/cuda/device_info.h"
#include "posattn/kernels/cuda/product.h"
#include "posattn/kernels/cuda/shared_attention.h"
#include "posattn/model/cuda/step/engine_choice.h"
#include "posattn/model/cuda/step/engine_harness_test.h"

namespace posattn::cuda {
namespace {

using emulator::PretendedCard;
const std::string general = "general", positional_engine = "fused-positional",
                  standard_engine = "fused-standard", medium_engine = "fused-medium";

constexpr DeviceLimits a100 = known_cards[0].limits, rtx_3090 = known_cards[1].limits,
                       rtx_4090 = known_cards[2].limits, h100 = known_cards[3].limits,
                       b200 = known_cards[4].limits;

ModelSpec paper_spec(const char* preset, int nodes) {
  ModelSpec spec;
  apply_preset(preset, spec);
  spec.real_nodes = nodes;
  return resolve(spec);
}

TEST(Cards, EachGetsTheFastestEngineThatFits) {
  using Ranges = std::vector<EngineRange>;
  const Ranges large_memory = {{"positional", 2, 8, positional_engine},
                               {"positional", 9, 64, medium_engine},
                               {"standard", 2, 8, standard_engine},
                               {"standard", 9, 64, medium_engine}};
  const Ranges small_memory = {{"positional", 2, 64, general}, {"standard", 2, 64, general}};
  EXPECT_EQ(paper_engines(h100), large_memory);
  EXPECT_EQ(paper_engines(b200), large_memory);
  EXPECT_EQ(paper_engines(rtx_3090), small_memory);
  EXPECT_EQ(paper_engines(rtx_4090), small_memory);
  const Ranges between = {{"positional", 2, 64, general},
                          {"standard", 2, 4, standard_engine},
                          {"standard", 5, 64, general}};
  EXPECT_EQ(paper_engines(a100), between);
}

TEST(Cards, TheDeviceIsTheOnePretended) {
  EXPECT_EQ(device_limits().shared_bytes, h100.shared_bytes);
  const PretendedCard card(rtx_4090);
  EXPECT_EQ(device_limits().minor, 9);
  EXPECT_EQ(device_info().shared_bytes, rtx_4090.shared_bytes);
  EXPECT_TRUE(device_info().usable);
}

TEST(Cards, OlderOnesAreRefusedInWords) {
  const PretendedCard card({7, 5, 64 * 1024});
  const DeviceInfo info = device_info();
  EXPECT_FALSE(info.usable);
  EXPECT_THAT(info.problem, ::testing::HasSubstr("compute capability 7.5, expected 8.0 or newer"));
}

TEST(Cards, AFoldedPathThatDoesNotFitIsRefusedInWords) {
  try {
    choose_engine(paper_spec("positional", 8), Precision::tf32, Path::folded, rtx_4090);
    FAIL() << "must be refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::configuration);
    EXPECT_THAT(error.problem(), ::testing::HasSubstr("99 KB of shared memory"));
  }
}

// What the general engine fuses where there is room for it.
TEST(Cards, SmallOnesFuseTheAttentionOfFewerNodes) {
  EXPECT_TRUE(attention_fits(128, 2, 64, 64));
  EXPECT_TRUE(mixing_fits(128, 64));
  const PretendedCard card(rtx_4090);
  EXPECT_FALSE(attention_fits(128, 2, 64, 64));
  EXPECT_FALSE(mixing_fits(128, 64));
  EXPECT_TRUE(attention_fits(64, 2, 64, 64));
  EXPECT_TRUE(mixing_fits(64, 64));
}

std::vector<float> random_floats(int64_t count, uint64_t seed) {
  RandomStream random(seed, Purpose::test_data, 0, 0);
  std::vector<float> values(count);
  for (float& value : values) value = random.uniform(-1, 1);
  return values;
}

// A row-major, or its transpose, which is what gradients of weights have.
std::vector<float> product_on(const DeviceLimits& limits, int rows, int columns, int depth,
                              bool transposed) {
  const PretendedCard card(limits);
  const DeviceBuffer<float> a(random_floats(int64_t{1} * rows * depth, 1));
  const DeviceBuffer<float> b(random_floats(int64_t{1} * depth * columns, 2));
  DeviceBuffer<float> c(int64_t{1} * rows * columns), workspace(product_workspace);
  Product product;
  product.rows = rows;
  product.columns = columns;
  product.depth = depth;
  product.a = transposed ? transpose(row_major(a.data(), rows)) : row_major(a.data(), depth);
  product.b = row_major(b.data(), columns);
  product.c = row_major(c.data(), columns);
  enqueue_product(product, Precision::tf32, nullptr, workspace.data(), nullptr);
  return c.download();
}

// Products whose blocks have as much shared memory as they find: fewer columns of each block, the
// same sums.
TEST(Cards, ProductsHaveTheSameBitsOnSmallOnes) {
  EXPECT_EQ(product_on(rtx_4090, 512, 192, 128, false), product_on(h100, 512, 192, 128, false));
  EXPECT_EQ(product_on(rtx_4090, 4, 512, 1024, true), product_on(h100, 4, 512, 1024, true));
}

void expect_agreement(ModelSpec spec, const std::string& name) {
  spec.depth = 2;
  FleetShape shape;
  shape.spec = spec;
  shape.batch = 3;
  const auto slot = testing::random_slot(spec, 5, 3, spec.real_nodes);
  const auto engine = make_step_engine(shape, Path::automatic);
  EXPECT_EQ(engine->name(), name);
  testing::expect_matches_reference(spec, slot, testing::run_engine(*engine, shape, {slot})[0],
                                    1e-3);
}

TEST(Cards, WhatTheyGetAgreesWithTheReference) {
  {
    const PretendedCard card(rtx_4090);
    expect_agreement(paper_spec("positional", 4), general);
  }
  const PretendedCard card(a100);
  expect_agreement(paper_spec("standard", 2), standard_engine);
  expect_agreement(paper_spec("positional", 8), general);
}

}  // namespace
}  // namespace posattn::cuda
