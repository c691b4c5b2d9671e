#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "posattn/bounds/count_bound.h"

namespace posattn::bounds {
namespace {

// Against the formula written out, for a class whose entropy is known.
TEST(Chaining, IsTheFormula) {
  const double clip = 1.5;
  for (const int64_t samples : {10, 1000, 1'000'000}) {
    const auto entropy = [](double radius) { return 5 * std::log(1 + 3 / radius); };
    double best = INFINITY, sum = 0, before = 0;
    int links = 0;
    for (int k = 1; k <= 40; ++k) {
      const double radius = clip * clip / 2 * std::pow(2, -k), h = entropy(radius);
      sum += 3 * radius * std::sqrt(2 * (h + before) / static_cast<double>(samples));
      before = h;
      if (radius + sum < best) {
        best = radius + sum;
        links = k;
      }
    }
    const Chain found =
        chain([&](double log) { return std::log(entropy(std::exp(log))); }, samples, clip);
    EXPECT_NEAR(std::exp(found.log_average), best, 1e-9);
    EXPECT_EQ(found.links, links);
  }
}

// Losses that are constants in [0, 1]: their average is E|sum of signs| / (2m), which is known, and
// 1/(2r) of them cover all to r.
TEST(Chaining, IsAboveAKnownAverage) {
  for (const double samples : {10.0, 400.0, 1e6}) {
    const Chain found =
        chain([](double log_radius) { return std::log(-log_radius - std::log(2.0) + 1e-12); },
              static_cast<int64_t>(samples), 1);
    const double exact = std::sqrt(2 / (std::numbers::pi * samples)) / 2;
    EXPECT_GE(std::exp(found.log_average), exact);
    EXPECT_LE(std::exp(found.log_average), 10 * exact);
  }
}

TEST(Chaining, HugeEntropies) {
  const Chain found = chain([](double log) { return 1e6 - 2 * log; }, 100, 1);
  EXPECT_TRUE(std::isfinite(found.log_average));
  EXPECT_NEAR(found.log_average, 5e5, 10);
  EXPECT_EQ(found.links, 1);
}

}  // namespace
}  // namespace posattn::bounds
