#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "posattn/bounds/count_bound.h"

namespace posattn::bounds {
namespace {

TEST(KlInverse, KnownValues) {
  EXPECT_DOUBLE_EQ(binary_kl(0.25, 0.25), 0);
  EXPECT_NEAR(binary_kl(0.5, 0.25), 0.5 * std::log(2.0) + 0.5 * std::log(2.0 / 3), 1e-15);
  EXPECT_TRUE(std::isinf(binary_kl(0.5, 1)));
  // Without a loss, (1 - p)^m = e^(-m bound).
  EXPECT_NEAR(kl_inverse(0, 0.3), 1 - std::exp(-0.3), 1e-15);
  EXPECT_EQ(kl_inverse(1, 0.1), 1);
  EXPECT_NEAR(kl_inverse(0.3, 0), 0.3, 1e-7);
  EXPECT_EQ(kl_inverse(0.3, std::numeric_limits<double>::infinity()), 1);
}

TEST(KlInverse, InvertsFromAbove) {
  for (const double q : {0.0, 1e-9, 1e-3, 0.2, 0.7, 0.999}) {
    double last = q;
    for (const double bound : {1e-8, 1e-4, 0.01, 0.3, 2.0}) {
      const double p = kl_inverse(q, bound);
      EXPECT_GE(p, last);
      EXPECT_LE(p, q + std::sqrt(bound / 2) + 1e-15);  // Pinsker
      EXPECT_GE(binary_kl(q, p), bound);
      if (p < 1) {
        EXPECT_NEAR(binary_kl(q, p), bound, 1e-9 + 1e-6 * bound);
      }
      last = p;
    }
  }
}

}  // namespace
}  // namespace posattn::bounds
