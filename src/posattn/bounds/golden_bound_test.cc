#include <gtest/gtest.h>

#include "posattn/bounds/count_bound.h"
#include "posattn/bounds/golden_network_test.h"
#include "posattn/bounds/network_norms.h"
#include "posattn/bounds/norm_bound.h"

namespace posattn::bounds {
namespace {

// The first three decimals were computed by an independent program (numpy) from the same recipe.
TEST(GoldenBounds, InitialValues) {
  struct Row {
    const char* architecture;
    int depth;
    double log10_norm, log10_count;
  };
  for (const Row& row :
       {Row{"positional", 1, 1.4787, -0.5634}, Row{"positional", 4, 3.1795, 0.3822},
        Row{"standard", 1, 1.2074, -0.2865}, Row{"standard", 4, 5.1868, 0.5659}}) {
    SCOPED_TRACE(std::string(row.architecture) + " " + std::to_string(row.depth));
    const NetworkNorms norms =
        testing::golden_norms({.architecture = row.architecture, .depth = row.depth});
    const BoundSetting setting{.samples = 30000};
    EXPECT_NEAR(to_log10(norm_bound(norms, setting).log_gap), row.log10_norm, 1e-4);
    EXPECT_NEAR(std::log10(count_bound(norms, setting).gap), row.log10_count, 1e-4);
  }
}

}  // namespace
}  // namespace posattn::bounds
