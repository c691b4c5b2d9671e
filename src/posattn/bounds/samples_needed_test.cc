
#include <gtest/gtest.h>

#include <cmath>

#include "posattn/base/error.h"
#include "posattn/bounds/count_bound.h"
#include "posattn/bounds/golden_network_test.h"
#include "posattn/bounds/norm_bound.h"

namespace posattn::bounds {
namespace {

TEST(SamplesNeeded, AreThoseWithWhichTheBoundIsTheGap) {
  for (const char* architecture : {"positional", "standard"}) {
    for (const double gap : {0.1, 1e-3}) {
      const NetworkNorms norms =
          testing::golden_norms({.architecture = architecture, .depth = 2, .width = 8});
      const SamplesNeeded needed = samples_needed(norms, {}, gap);
      const auto by_norms = [&](double log) {
        return norm_bound(norms, {.samples = std::exp(log)}).log_gap;
      };
      const auto by_count = [&](double log) {
        return std::log(count_bound(norms, {.samples = std::exp(log)}).gap);
      };
      EXPECT_LE(by_norms(needed.log_by_norms), std::log(gap));
      EXPECT_GT(by_norms(needed.log_by_norms - 2e-3), std::log(gap));
      EXPECT_LE(by_count(needed.log_by_count), std::log(gap));
      EXPECT_GT(by_count(needed.log_by_count - 2e-3), std::log(gap));
    }
  }
}

// The trade-off of Theorem 6.1: each layer multiplies the samples that the bound asks for.
TEST(SamplesNeeded, GrowWithTheDepth) {
  for (const char* architecture : {"positional", "standard"}) {
    double before = 0;
    for (const int depth : {1, 2, 4}) {
      const SamplesNeeded needed = samples_needed(
          testing::golden_norms({.architecture = architecture, .depth = depth, .width = 8}), {},
          0.1);
      EXPECT_GT(needed.log_by_norms, before + 1);
      before = needed.log_by_norms;
    }
  }
}

TEST(SamplesNeeded, AreRefusedForNoGap) {
  const NetworkNorms norms =
      testing::golden_norms({.architecture = "positional", .depth = 1, .width = 8});
  for (const double gap : {0.0, -1.0, std::nan(""), double{INFINITY}}) {
    EXPECT_THROW(samples_needed(norms, {}, gap), Error);
  }
}

}  // namespace
}  // namespace posattn::bounds
