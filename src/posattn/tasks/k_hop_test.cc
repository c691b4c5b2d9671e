#include "posattn/tasks/k_hop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "posattn/base/random.h"

namespace posattn {
namespace {

using testing::ElementsAre;

TEST(KHop, FollowsAWordByHand) {
  //                               0  1  2  3  4  5
  const std::vector<int32_t> word{1, 2, 1, 3, 1, 2};
  EXPECT_THAT(hop_places(word), ElementsAre(-1, -1, 1, -1, 3, 2));
  EXPECT_THAT(k_hop(word, 0), ElementsAre(1, 2, 1, 3, 1, 2));
  EXPECT_THAT(k_hop(word, 1), ElementsAre(-1, -1, 2, -1, 3, 1));
  // From 5 to 2 and on from there, not again from 5.
  EXPECT_THAT(k_hop(word, 2), ElementsAre(-1, -1, -1, -1, -1, 2));
}

// The definition as it is written: a search back from the place that was reached.
TEST(KHop, IsTheSearchOfItsDefinition) {
  RandomStream random(1, Purpose::test_data, 0, 0);
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<int32_t> word(1 + random.below(30));
    for (int32_t& letter : word) letter = static_cast<int32_t>(random.below(4));
    const int k = static_cast<int>(random.below(6));
    const std::vector<int32_t> found = k_hop(word, k);
    for (size_t i = 0; i < word.size(); ++i) {
      int at = static_cast<int>(i);
      for (int hop = 0; hop < k && at >= 0; ++hop) {
        int j = at;
        while (j >= 1 && word[j - 1] != word[at]) --j;
        at = j >= 1 ? j : -1;
      }
      EXPECT_EQ(found[i], at < 0 ? -1 : word[at]);
    }
  }
}

}  // namespace
}  // namespace posattn
