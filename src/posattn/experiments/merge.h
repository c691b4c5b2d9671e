// Shards (shards.h) brought together in their results folder DIR.
//
// Shards are only read, while they train too: what ended is taken, the rest is left for the next
// time. Nothing is removed, so that a merge may be killed and repeated; a shard's folder may be
// removed once it has ended and was merged. A run's folder comes first, whole by a rename, then all
// results in one transaction: DIR never has a result that its merge has not finished with.
//
// A result counts as the same if the run ended in the same way after as many steps with the same
// measurements to the bit. Where DIR (or an earlier shard) has another one, that is a conflict, as
// of runs on CPU and GPU: the first is kept, the other stays in its shard, both are named.
//
// A shard may come from anywhere. One whose database is damaged, or has a run whose key is not that
// of its settings, is left out as a whole and named; the others are merged.
#pragma once

#include <functional>

#include "posattn/results/results_database.h"

namespace posattn {

// A run of a shard that ended.
struct ShardRun {
  RunResult result;
  std::filesystem::path shard;
  bool is_new = true;  // else the same result is known already
};

struct MergeConflict {
  std::string key;
  std::filesystem::path kept, other;  // databases
  std::string message;                // both, in words
};

struct ShardProblem {
  std::filesystem::path place;
  std::string message;
};

struct ShardReading {
  int64_t shards = 0;  // that were read
  std::vector<ShardRun> runs;
  std::vector<MergeConflict> conflicts;
  std::vector<ShardProblem> problems;  // left out
};

// Reads the shards. `known` are the results of DIR without them.
ShardReading read_shards(const std::filesystem::path& results, const ResultsDatabase& known);

struct MergeSummary {
  int64_t shards = 0;
  int64_t added = 0, there = 0;  // results
  int64_t folders = 0;           // of runs, brought to DIR/runs
  std::vector<MergeConflict> conflicts;
  std::vector<ShardProblem> problems;
};

// Merges in a process that holds the lock of DIR and has its database open. A folder of DIR that
// holds the run unfinished is replaced by the finished one. Throws Error(failed) when DIR cannot be
// written.
MergeSummary merge_shards(const std::filesystem::path& results, ResultsDatabase& database);
// Merges in any other process: takes the lock first. Throws Error(data) when there are no shards,
// Error(failed) when another process works in DIR itself.
MergeSummary merge_shards(const std::filesystem::path& results);

// A line for each conflict and each problem.
void describe(const std::vector<MergeConflict>& conflicts,
              const std::vector<ShardProblem>& problems,
              const std::function<void(const std::string&)>& notice);

}  // namespace posattn
