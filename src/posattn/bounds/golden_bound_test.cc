#include <gtest/gtest.h>

#include "posattn/bounds/count_bound.h"
#include "posattn/bounds/golden_network_test.h"
#include "posattn/bounds/log_space.h"
#include "posattn/bounds/norm_bound.h"

namespace posattn::bounds {
namespace {

// Computed once by an independent program (numpy).
TEST(GoldenBounds, InitialValues) {
  struct Row {
    const char* architecture;
    int depth;
    double log10_norm, log10_count;
  };
  for (const Row& row : {Row{"positional", 1, 1.479, -0.563}, Row{"positional", 4, 3.180, 0.382},
                         Row{"standard", 1, 1.207, -0.287}, Row{"standard", 4, 5.187, 0.566}}) {
    SCOPED_TRACE(std::string(row.architecture) + " " + std::to_string(row.depth));
    const NetworkNorms norms =
        testing::golden_norms({.architecture = row.architecture, .depth = row.depth});
    const BoundSetting setting{.samples = 30000};
    EXPECT_NEAR(to_log10(norm_bound(norms, setting).log_gap), row.log10_norm, 6e-4);
    EXPECT_NEAR(std::log10(count_bound(norms, setting).gap), row.log10_count, 6e-4);
  }
}

}  // namespace
}  // namespace posattn::bounds
