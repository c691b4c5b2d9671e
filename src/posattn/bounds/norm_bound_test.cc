#include "posattn/bounds/norm_bound.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "posattn/base/error.h"
#include "posattn/bounds/count_bound.h"
#include "posattn/bounds/golden_network_test.h"
#include "posattn/bounds/network_norms.h"

namespace posattn::bounds {
namespace {

constexpr BoundSetting usual{.samples = 30000};

double log10_norm_bound(const NetworkNorms& norms, const BoundSetting& setting = usual) {
  return to_log10(norm_bound(norms, setting).log_gap);
}

double log10_count_bound(const NetworkNorms& norms, const BoundSetting& setting = usual) {
  return std::log10(count_bound(norms, setting).gap);
}

// Every norm of a network, one after the other.
void for_each_norm(NetworkNorms& norms, const std::function<void(double&)>& visit) {
  for (LayerNorms& layer : norms.layers) {
    for (auto* list : {&layer.maps, &layer.scores, &layer.score_offsets, &layer.scores_frobenius,
                       &layer.scores_joined}) {
      for (double& norm : *list) visit(norm);
    }
    visit(layer.offset);
    visit(layer.rows);
    visit(layer.joined);
  }
  visit(norms.output);
  visit(norms.output_joined);
}

TEST(Bounds, GrowWithEveryFactor) {
  for (const char* architecture : {"positional", "standard"}) {
    NetworkNorms norms =
        testing::golden_norms({.architecture = architecture, .depth = 2, .width = 8});
    const double by_norms = log10_norm_bound(norms), by_count = log10_count_bound(norms);
    for_each_norm(norms, [&](double& norm) {
      const double before = norm;
      double last_norms = by_norms, last_count = by_count;
      // From 1 on, where a larger norm does not cost less on the grid.
      for (const double more : {3.0, 10.0, 100.0}) {
        norm = std::max(before, 0.0) + more;
        EXPECT_GE(log10_norm_bound(norms), last_norms - 1e-4);
        EXPECT_GE(log10_count_bound(norms), last_count - 1e-4);
        last_norms = log10_norm_bound(norms);
        last_count = log10_count_bound(norms);
      }
      EXPECT_GT(last_norms + last_count, by_norms + by_count + 1e-6);
      norm = before;
    });
    for (const BoundSetting& harder :
         {BoundSetting{.samples = 30000, .range = 3}, BoundSetting{.samples = 30000, .delta = 0.01},
          BoundSetting{.samples = 20000}, BoundSetting{.samples = 30000, .clip = 2}}) {
      EXPECT_GT(log10_norm_bound(norms, harder), by_norms);
      EXPECT_GT(log10_count_bound(norms, harder), by_count);
    }
  }
}

TEST(Bounds, FallWithSamples) {
  for (const char* architecture : {"positional", "standard"}) {
    for (const int depth : {1, 4}) {
      const NetworkNorms norms =
          testing::golden_norms({.architecture = architecture, .depth = depth});
      const auto slope = [&](const auto& bound) {
        return (bound(norms, BoundSetting{.samples = 1'000'000}) -
                bound(norms, BoundSetting{.samples = 1000})) /
               3;
      };
      for (const double found : {slope(log10_norm_bound), slope(log10_count_bound)}) {
        EXPECT_GE(found, -0.5) << architecture << depth;
        EXPECT_LE(found, -0.4) << architecture << depth;
      }
    }
  }
}

// The paper's point: queries and keys do not enter (a), and enter (b) with the power 2L.
TEST(Bounds, QueriesAndKeys) {
  for (const int depth : {1, 2, 4}) {
    const ModelSpec positional = testing::spec_of({.depth = depth, .width = 8}),
                    standard =
                        testing::spec_of({.architecture = "standard", .depth = depth, .width = 8});
    const auto scaled = [](const ModelSpec& spec, double factor) {
      Parameters<double> parameters = testing::golden_parameters(spec);
      for (int l = 0; l < spec.depth; ++l) {
        for (double& w : parameters[names::of_layer(l, names::weight(names::query_key))])
          w *= factor;
      }
      return norms_of(collapse(spec, parameters));
    };
    EXPECT_NEAR(log10_norm_bound(scaled(positional, 1)), log10_norm_bound(scaled(positional, 1e6)),
                1e-12);
    EXPECT_NEAR(log10_count_bound(scaled(positional, 1)),
                log10_count_bound(scaled(positional, 1e6)), 1e-12);
    const double slope =
        (log10_norm_bound(scaled(standard, 1e9)) - log10_norm_bound(scaled(standard, 1e6))) / 3;
    EXPECT_NEAR(slope / (2 * depth), 1, 0.01) << depth;
    // What the command scales is what scaled weights give.
    EXPECT_NEAR(log10_norm_bound(with_scaled_queries_and_keys(scaled(standard, 1), std::log(50))),
                log10_norm_bound(scaled(standard, 50)), 0.02);
  }
}

TEST(Bounds, WhatChangesNoFunctionOfTheNetwork) {
  for (const char* architecture : {"positional", "standard"}) {
    const ModelSpec spec =
        testing::spec_of({.architecture = architecture, .depth = 2, .width = 8, .length = 3});
    const Parameters<double> parameters = testing::golden_parameters(spec);
    const double by_norms = log10_norm_bound(norms_of(collapse(spec, parameters)));
    Parameters<double> changed = parameters;
    // A key bias, which the softmax does not see.
    const int key_size = spec.key_size();
    for (int k = 0; k < key_size; ++k) {
      changed[names::of_layer(0, names::bias(names::query_key))][key_size + k] = 3;
    }
    // Two hidden units of the first MLP exchanged.
    const auto first = changed[names::of_layer(0, names::weight(names::mlp_map(0)))];
    std::swap_ranges(first.begin(), first.begin() + 16, first.begin() + 16);
    const auto bias = changed[names::of_layer(0, names::bias(names::mlp_map(0)))];
    std::swap(bias[0], bias[1]);
    const auto second = changed[names::of_layer(0, names::weight(names::mlp_map(1)))];
    for (int r = 0; r < 8; ++r) std::swap(second[8 * r], second[8 * r + 1]);
    EXPECT_NEAR(log10_norm_bound(norms_of(collapse(spec, changed))), by_norms, 1e-9)
        << architecture;
  }
}

TEST(Bounds, DeepNetworksDoNotOverflow) {
  for (const char* architecture : {"positional", "standard"}) {
    const ModelSpec spec =
        testing::spec_of({.architecture = architecture, .depth = 64, .width = 4, .length = 2});
    Parameters<double> parameters = testing::golden_parameters(spec);
    for (double& w : parameters.values()) w *= 1e20;
    const NetworkNorms norms = norms_of(collapse(spec, parameters));
    const double found = log10_norm_bound(norms);
    EXPECT_TRUE(std::isfinite(found));
    EXPECT_GT(found, 64 * 40);
    EXPECT_TRUE(std::isfinite(log10_count_bound(norms)));
    EXPECT_EQ(small_loss_bound(norms, usual, 0), 1);
  }
}

TEST(Bounds, SmallLossForm) {
  const NetworkNorms norms = testing::golden_norms({.depth = 1, .width = 8});
  const BoundSetting many{.samples = 1'000'000, .clip = 2};
  const double gap = count_bound(norms, many).gap;
  double last = 0;
  for (const double loss : {0.0, 0.01, 0.1, 1.0, 3.9}) {
    const double risk = small_loss_bound(norms, many, loss);
    EXPECT_GE(risk, last);
    EXPECT_GE(risk, loss);
    EXPECT_LE(risk, 4);
    // Pinsker makes it the other form, but for the union over radii.
    EXPECT_LE(risk, loss + 1.01 * gap);
    last = risk;
  }
  EXPECT_LT(small_loss_bound(norms, many, 0), gap / 10);
}

TEST(Bounds, NothingIsNorm) {
  NetworkNorms norms = testing::golden_norms({.depth = 1, .width = 4});
  for_each_norm(norms, [](double& norm) { norm = log_zero; });
  EXPECT_TRUE(std::isfinite(log10_norm_bound(norms)));
  EXPECT_TRUE(std::isfinite(log10_count_bound(norms)));
}

TEST(Bounds, RefuseSenselessSettings) {
  const NetworkNorms norms = testing::golden_norms({.depth = 1, .width = 4});
  for (const BoundSetting& setting :
       {BoundSetting{.samples = 0}, BoundSetting{.samples = -1}, BoundSetting{.range = 0},
        BoundSetting{.range = NAN}, BoundSetting{.clip = 0}, BoundSetting{.clip = INFINITY},
        BoundSetting{.delta = 0}, BoundSetting{.delta = 1}, BoundSetting{.delta = NAN}}) {
    EXPECT_THROW(norm_bound(norms, setting), Error);
    EXPECT_THROW(count_bound(norms, setting), Error);
    EXPECT_THROW(small_loss_bound(norms, setting, 0), Error);
  }
  EXPECT_TRUE(std::isfinite(log10_norm_bound(norms, {.samples = 1})));
}

}  // namespace
}  // namespace posattn::bounds
