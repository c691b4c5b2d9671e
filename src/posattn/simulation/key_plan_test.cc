#include "posattn/simulation/key_plan.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace posattn::simulation {
namespace {

// The keys that copy 0 of each node knows at last, each as often as it was taken in.
std::multiset<int> keys_of(const KeyPlan& plan, int i) {
  std::vector<std::multiset<int>> known(plan.copies);
  for (int c = 0; c < plan.copies; ++c) {
    for (int step = 0; step < plan.steps(); ++step) {
      const int j = plan.key(i, c, step);
      if (j < 0) {
        EXPECT_TRUE(plan.misses_keys(step));
        continue;
      }
      known[c].insert(j);
      if (plan.rotated) {
        EXPECT_EQ(i - j, plan.distance(0, step));  // the same for all nodes
        continue;
      }
      // Keys that are missing come last, within a copy and among copies.
      EXPECT_TRUE(step == 0 || plan.key(i, c, step - 1) >= 0);
      EXPECT_TRUE(c == 0 || plan.key(i, c - 1, step) >= 0);
    }
  }
  for (int round = 0; round < plan.rounds(); ++round) {
    for (int c = 0; c < plan.copies; ++c) {
      const int partner = plan.partner(c, round);
      if (partner >= 0) known[c].insert(known[partner].begin(), known[partner].end());
    }
  }
  return known[0];
}

TEST(KeyPlan, EveryKeyIsTakenOnce) {
  for (const bool causal : {false, true}) {
    for (int nodes = 1; nodes <= 12; ++nodes) {
      for (int copies = 1; copies <= nodes; ++copies) {
        const KeyPlan plan{nodes, copies, causal};
        for (int i = 0; i < nodes; ++i) {
          std::multiset<int> expected;
          for (int j = 0; j < (causal ? i + 1 : nodes); ++j) expected.insert(j);
          EXPECT_EQ(keys_of(plan, i), expected) << nodes << " " << copies << " " << i;
        }
      }
    }
  }
}

TEST(KeyPlan, StepsOfOneDistance) {
  for (const bool causal : {false, true}) {
    for (int nodes = 1; nodes <= 6; ++nodes) {
      const KeyPlan plan{nodes, 1, causal, true};
      EXPECT_EQ(plan.steps(), causal ? nodes : 2 * nodes - 1);
      for (int i = 0; i < nodes; ++i) {
        EXPECT_EQ(plan.key(i, 0, 0), i);
        std::multiset<int> expected;
        for (int j = 0; j < (causal ? i + 1 : nodes); ++j) expected.insert(j);
        EXPECT_EQ(keys_of(plan, i), expected) << nodes << " " << i;
      }
    }
  }
}

TEST(KeyPlan, Sizes) {
  const KeyPlan ring{9, 1}, some{9, 3}, all{9, 9}, large{65, 8};
  EXPECT_EQ(ring.all_nodes(), 10);
  EXPECT_EQ(ring.layers(), 9 + 3);  // N + 3
  EXPECT_EQ(some.all_nodes(), 28);
  EXPECT_EQ(some.layers(), 3 + 2 + 3);  // ceil(N / k) + ceil(log2 k) + 3
  EXPECT_EQ(all.all_nodes(), 82);       // N^2 + 1
  EXPECT_EQ(all.layers(), 4 + 3);       // ceil(log2 N) + 3
  EXPECT_EQ(large.layers(), 9 + 3 + 3);
  EXPECT_EQ((KeyPlan{1, 1}.layers()), 3);
}

}  // namespace
}  // namespace posattn::simulation
