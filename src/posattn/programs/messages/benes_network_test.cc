#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "posattn/base/random.h"
#include "posattn/programs/messages/message_group.h"

namespace posattn {
namespace {

// Where the word of each port arrives.
std::vector<int32_t> carried(const std::vector<int32_t>& permutation) {
  const auto ports = static_cast<int>(permutation.size());
  const auto partners = benes_partners(ports);
  const auto switches = benes_switches(permutation);
  EXPECT_EQ(switches.size(), partners.size());
  std::vector<int32_t> words(ports);
  std::iota(words.begin(), words.end(), 0);
  for (size_t stage = 0; stage < partners.size(); ++stage) {
    const std::vector<int32_t> before = words;
    for (int i = 0; i < ports; ++i) {
      if (switches[stage][i]) words[i] = before[partners[stage][i]];
    }
  }
  std::vector<int32_t> arrived(ports, -1);
  for (int i = 0; i < ports; ++i) arrived[words[i]] = i;
  return arrived;
}

TEST(BenesNetwork, EveryPermutationUpToEight) {
  for (int ports = 1; ports <= 8; ++ports) {
    std::vector<int32_t> permutation(ports);
    std::iota(permutation.begin(), permutation.end(), 0);
    do {
      ASSERT_EQ(carried(permutation), permutation);
    } while (std::ranges::next_permutation(permutation).found);
  }
}

TEST(BenesNetwork, RandomPermutationsOfAnySize) {
  RandomStream random(3, Purpose::test_data, 0, 0);
  const auto below = [&](int count) {
    return static_cast<int>(random.uniform() * static_cast<float>(count)) % count;
  };
  for (int trial = 0; trial < 150; ++trial) {
    const int ports = trial < 4 ? 1024 - trial : 1 + below(300);
    std::vector<int32_t> permutation(ports);
    std::iota(permutation.begin(), permutation.end(), 0);
    for (int i = ports - 1; i > 0; --i) std::swap(permutation[i], permutation[below(i + 1)]);
    ASSERT_EQ(carried(permutation), permutation) << ports;
  }
}

TEST(BenesNetwork, HasTwoLogarithmsOfStagesLessOne) {
  EXPECT_EQ(benes_stages(1), 0);
  EXPECT_EQ(benes_stages(2), 1);
  EXPECT_EQ(benes_stages(3), 3);
  EXPECT_EQ(benes_stages(8), 5);
  EXPECT_EQ(benes_stages(9), 7);
  EXPECT_EQ(benes_stages(100), 13);
  EXPECT_EQ(benes_stages(1024), 19);
}

TEST(BenesNetwork, PartnersAreMutual) {
  for (const int ports : {5, 8, 100}) {
    for (const auto& stage : benes_partners(ports)) {
      for (int i = 0; i < ports; ++i) EXPECT_EQ(stage[stage[i]], i);
    }
  }
}

TEST(BenesNetwork, RefusesWhatIsNoPermutation) {
  EXPECT_THROW(benes_switches(std::vector<int32_t>{0, 0}), std::logic_error);
  EXPECT_THROW(benes_switches(std::vector<int32_t>{0, 2}), std::logic_error);
}

}  // namespace
}  // namespace posattn
