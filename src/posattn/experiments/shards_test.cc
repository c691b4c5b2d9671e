#include "posattn/experiments/shards.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "posattn/base/error.h"
#include "posattn/base/temporary_folder_test.h"
#include "posattn/training/small_run_test.h"

namespace posattn {
namespace {

// Two shapes that take turns, costs from 1 to 5 times the smallest's.
std::vector<ExperimentRun> uneven_grid(int64_t seeds) {
  std::vector<ExperimentRun> runs;
  for (int64_t seed = 0; seed < seeds; ++seed) {
    for (const char* architecture : {"positional", "standard"}) {
      RunConfig config = small_run();
      config.architecture = architecture;
      config.seed = seed;
      config.samples = 20 * (1 + seed % 5);
      runs.push_back({config.task, architecture, std::nullopt, config, run_key(config)});
    }
  }
  return runs;
}

double cost_of(const std::vector<ExperimentRun>& runs) {
  double cost = 0;
  for (const ExperimentRun& run : runs) cost += estimated_cost(run.config);
  return cost;
}

TEST(Shards, AreAPartitionOfEqualCost) {
  std::vector<ExperimentRun> grid = uneven_grid(13);
  const double cost = cost_of(grid);
  double largest = 0;
  for (const ExperimentRun& run : grid) largest = std::max(largest, estimated_cost(run.config));
  const std::size_t different = grid.size();
  grid.push_back(grid.front());  // a run that two lines share
  for (const int64_t of : {1, 2, 3, 7, 26, 100}) {
    std::set<std::string> seen;
    for (int64_t number = 0; number < of; ++number) {
      const std::vector<ExperimentRun> part = runs_of_shard(grid, {number, of});
      for (const ExperimentRun& run : part) EXPECT_TRUE(seen.insert(run.key).second) << of;
      EXPECT_LE(std::abs(cost_of(part) - cost / static_cast<double>(of)), largest) << of;
    }
    EXPECT_EQ(seen.size(), different) << of;
  }
}

TEST(Shards, KeepEqualShapesTogether) {
  int both = 0;
  for (int64_t number = 0; number < 4; ++number) {
    std::set<std::string> lines;
    for (const ExperimentRun& run : runs_of_shard(uneven_grid(20), {number, 4})) {
      lines.insert(run.line);
    }
    both += lines.size() > 1 ? 1 : 0;
  }
  EXPECT_LE(both, 1);
}

TEST(Shards, OfFewRunsHaveOneEach) {
  const std::vector<ExperimentRun> grid = uneven_grid(1);
  std::size_t most = 0;
  for (int64_t number = 0; number < 8; ++number) {
    most = std::max(most, runs_of_shard(grid, {number, 8}).size());
  }
  EXPECT_EQ(most, 1u);
  EXPECT_TRUE(runs_of_shard({}, {0, 2}).empty());
}

TEST(Shards, AreReadStrictly) {
  EXPECT_EQ(shard_from("3/16"), (Shard{3, 16}));
  EXPECT_EQ(shard_from("0/1"), (Shard{0, 1}));
  EXPECT_EQ(to_string(Shard{3, 16}), "3/16");
  for (const char* wrong :
       {"16/16", "0/0", "x", "", "3", "/", "3/", "/16", "-1/16", "+1/16", "03/16", "3/16 ", "3/-16",
        "1/2/3", "0/100001", "3 of 16", "99999999999999999999/3"}) {
    try {
      shard_from(wrong);
      ADD_FAILURE() << wrong;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage) << wrong;
    }
  }
}

TEST(Shards, AreFoundByTheirFolders) {
  const TemporaryFolder folder;
  EXPECT_TRUE(shards_in(folder.path()).empty());
  for (const char* name : {"1-of-2", "10-of-16", "9-of-16", "2-of-2", "01-of-2", "mine"}) {
    std::filesystem::create_directories(folder.path() / "shards" / name);
  }
  EXPECT_EQ(shards_in(folder.path()), (std::vector<Shard>{{1, 2}, {9, 16}, {10, 16}}));
  EXPECT_EQ(shard_folder("results", {9, 16}), "results/shards/9-of-16");
}

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
