#include "posattn/experiments/chunks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

#include "posattn/training/small_run_test.h"

namespace posattn {
namespace {

TEST(ChunksTest, RunsOfOneShapeComeTogether) {
  std::vector<RunConfig> configs;
  for (const char* task : {"cumulative-sum", "sort"}) {
    for (const int64_t width : {8, 16}) {
      for (const int64_t seed : {0, 1}) {
        configs.push_back(small_run());
        configs.back().task = task;
        configs.back().width = width;
        configs.back().seed = seed;
      }
    }
  }
  using Chunks = std::vector<std::vector<std::size_t>>;
  EXPECT_EQ(plan_chunks(configs, 100), (Chunks{{0, 1, 4, 5, 2, 3, 6, 7}}));
  EXPECT_EQ(plan_chunks(configs, 5), (Chunks{{0, 1, 4, 5}, {2, 3, 6, 7}}));
  EXPECT_EQ(plan_chunks(configs, 3), (Chunks{{0, 1}, {4, 5}, {2, 3}, {6, 7}}));
  EXPECT_TRUE(plan_chunks({}, 3).empty());
  configs[5].epochs *= 2;  // the longest first
  EXPECT_EQ(plan_chunks(configs, 5), (Chunks{{5, 0, 1, 4}, {2, 3, 6, 7}}));
}

TEST(ChunksTest, EveryRunIsInOneChunkOfAllowedSize) {
  std::mt19937 random(3);
  for (int grid = 0; grid < 30; ++grid) {
    std::vector<RunConfig> configs(random() % 60, small_run());
    for (RunConfig& config : configs) {
      config.width = 8 * (1 + static_cast<int64_t>(random() % 3));
      config.batch = 10 + static_cast<int64_t>(random() % 2);
    }
    const std::size_t most = 1 + random() % 20;
    std::vector<std::size_t> places;
    for (const auto& chunk : plan_chunks(configs, most)) {
      EXPECT_LE(chunk.size(), most);
      EXPECT_FALSE(chunk.empty());
      places.insert(places.end(), chunk.begin(), chunk.end());
    }
    // One shape after the other.
    std::set<std::pair<int64_t, int64_t>> seen;
    std::pair<int64_t, int64_t> shape;
    for (const std::size_t place : places) {
      const std::pair<int64_t, int64_t> next(configs[place].width, configs[place].batch);
      EXPECT_TRUE(next == shape || seen.insert(next).second);
      shape = next;
    }
    std::sort(places.begin(), places.end());
    std::vector<std::size_t> expected(configs.size());
    std::iota(expected.begin(), expected.end(), std::size_t{0});
    EXPECT_EQ(places, expected);
  }
}

}  // namespace
}  // namespace posattn
