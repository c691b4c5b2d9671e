#include "posattn/training/batches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace posattn {
namespace {

// Sets whose inputs are sample numbers, unique over all sets, and whose targets are their negative.
std::vector<Dataset> numbered_sets(const std::vector<std::pair<int, int64_t>>& lengths) {
  std::vector<Dataset> sets;
  float number = 1;
  for (const auto& [length, samples] : lengths) {
    Dataset set;
    set.length = length;
    set.shape.real_nodes = length;
    set.samples = samples;
    for (int64_t i = 0; i < samples; ++i, ++number) {
      set.inputs.insert(set.inputs.end(), length, number);
      set.targets.insert(set.targets.end(), length, -number);
    }
    sets.push_back(std::move(set));
  }
  return sets;
}

TEST(Batches, EverySampleOncePerEpochWithAPartialLastBatch) {
  const std::vector<Dataset> sets = numbered_sets({{3, 25}});
  EpochBatches batches(sets, 10, 7, 1);
  ASSERT_EQ(batches.count(), 3);
  EXPECT_EQ(EpochBatches::count(sets, 10), 3);
  std::multiset<float> seen;
  std::vector<int64_t> sizes;
  for (int64_t b = 0; b < batches.count(); ++b) {
    const Batch batch = batches.gather(b);
    sizes.push_back(batch.samples);
    EXPECT_EQ(batch.real_nodes, 3);
    for (int64_t i = 0; i < batch.samples; ++i) {
      for (int node = 0; node < 3; ++node) {
        EXPECT_EQ(batch.inputs[i * 3 + node], batch.inputs[i * 3]);
        EXPECT_EQ(batch.targets[i * 3 + node], -batch.inputs[i * 3]);
      }
      seen.insert(batch.inputs[i * 3]);
    }
  }
  EXPECT_EQ(sizes, (std::vector<int64_t>{10, 10, 5}));
  EXPECT_EQ(seen.size(), 25u);
  EXPECT_EQ(std::set<float>(seen.begin(), seen.end()).size(), 25u);
}

TEST(Batches, OrderDependsOnSeedAndEpochOnly) {
  const auto order = shuffled(5, 9, 0, 1000);
  EXPECT_EQ(order, shuffled(5, 9, 0, 1000));
  EXPECT_NE(order, shuffled(5, 10, 0, 1000));
  EXPECT_NE(order, shuffled(6, 9, 0, 1000));
  std::vector<uint32_t> sorted = order;
  std::ranges::sort(sorted);
  for (uint32_t i = 0; i < 1000; ++i) ASSERT_EQ(sorted[i], i);
}

TEST(Batches, ShuffleIsUnbiased) {
  // Where sample 0 of four lands over many epochs: 4000 draws, standard deviation below 28.
  std::map<int64_t, int> places;
  for (int64_t epoch = 0; epoch < 4000; ++epoch) {
    const auto order = shuffled(1, epoch, 0, 4);
    ++places[std::ranges::find(order, 0u) - order.begin()];
  }
  for (int64_t place = 0; place < 4; ++place) EXPECT_NEAR(places[place], 1000, 140);
}

TEST(Batches, LengthsAreMixedButNeverWithinABatch) {
  const std::vector<Dataset> sets = numbered_sets({{1, 40}, {2, 40}, {3, 35}});
  EpochBatches batches(sets, 10, 3, 2);
  ASSERT_EQ(batches.count(), 12);
  std::set<float> seen;
  std::vector<std::size_t> lengths;
  for (int64_t b = 0; b < batches.count(); ++b) {
    const Batch batch = batches.gather(b);
    EXPECT_EQ(batch.real_nodes, sets[batches.set_of(b)].length);
    lengths.push_back(batches.set_of(b));
    for (int64_t i = 0; i < batch.samples; ++i) seen.insert(batch.inputs[i * batch.real_nodes]);
  }
  EXPECT_EQ(seen.size(), 115u);
  EXPECT_FALSE(std::ranges::is_sorted(lengths));
}

}  // namespace
}  // namespace posattn
