// A grid in independent parts, for example for the tasks of a Slurm array: shard 3/16 is one of 16,
// and trains in a results folder of its own, DIR/shards/3-of-16 (results.db, runs/ and lock as in
// every results folder). So no two shards write to one file, on a shared file system either, and
// the lock refuses a second process with the same shard. Shards of another number (3/16 and 2/8)
// may lie side by side. merge.h brings shards together.
//
// Which runs a shard has follows from the grid alone, never from what is done already: runs are
// lined up by shape, so that equal ones lie together and form fleets, and the line is cut into
// parts of equal cost. A shard is off the mean by no more than the cost of the largest run. What
// DIR or any shard of it has a result of is not trained again; a run that a shard began is gone on
// with by that shard alone.
#pragma once

#include <cstddef>

#include "posattn/experiments/experiment.h"
#include "posattn/training/run_config.h"

namespace posattn {

struct Shard {
  int64_t number = 0, of = 1;  // 0 <= number < of
  bool operator==(const Shard&) const = default;
};

Shard shard_from(std::string_view text);  // "3/16"; throws Error(usage)
std::string to_string(const Shard& shard);

std::filesystem::path shard_folder(const std::filesystem::path& results, const Shard& shard);
// The shards that have a folder, by `of`, then by `number`.
std::vector<Shard> shards_in(const std::filesystem::path& results);

// The shard's part of `grid`, in its order; a key that comes twice counts once. Every run is in
// exactly one of the shards 0/M to (M-1)/M.
std::vector<ExperimentRun> runs_of_shard(const std::vector<ExperimentRun>& grid,
                                         const Shard& shard);

// What training takes, in no particular unit: exact enough to share runs out.
double estimated_cost(const RunConfig& config);

// Places of `configs` whose models have one shape, which a GPU trains in lockstep; shapes, and
// places of a shape, in their order.
std::vector<std::vector<std::size_t>> by_shape(const std::vector<RunConfig>& configs);

// Places of `configs` in chunks of at most `most` runs. Runs of one shape come together and stay in
// one chunk, or share as few as they can in equal parts, the longest first. Otherwise the order is
// kept.
std::vector<std::vector<std::size_t>> plan_chunks(const std::vector<RunConfig>& configs,
                                                  std::size_t most);

}  // namespace posattn
