#include "posattn/experiments/merge.h"

#include <fmt/format.h>

#include "posattn/base/error.h"
#include "posattn/base/file.h"
#include "posattn/base/text.h"
#include "posattn/experiments/recorded_runs.h"
#include "posattn/experiments/shards.h"

namespace posattn {
namespace {

namespace fs = std::filesystem;

// The checksum of what must be the same wherever and whenever the run was trained.
std::string fingerprint(RunResult result) {
  result.configuration.clear();  // the key stands for it; threads and device may differ
  result.message.clear();
  result.seconds = 0;
  result.device.clear();
  result.version.clear();
  result.commit.clear();
  result.ended.clear();
  return checksum_of(result);
}

std::string origin(const fs::path& file, const RunResult& result) {
  return fmt::format("'{}' ({}, {})", file.string(), printable(result.device),
                     printable(result.ended));
}

// The runs that ended. The reader of recorded runs checks each of them, so a key is safe as the
// name of a folder.
std::vector<RunResult> ended_runs(const fs::path& shard) {
  std::vector<RunResult> ended;
  for (RunResult& result : ResultsDatabase(shard, ResultsDatabase::Access::read).all()) {
    if (!has_ended(result.status)) continue;
    run_results_from_text(to_json_line(result), (shard / "results.db").string());
    ended.push_back(std::move(result));
  }
  return ended;
}

class Reading {
 public:
  Reading(const fs::path& results, const ResultsDatabase& known)
      : database_(results / "results.db"), known_(known), statuses_(known.statuses()) {}

  void read(const fs::path& shard) {
    if (!has_database(shard)) return;
    try {
      const std::vector<RunResult> ended = ended_runs(shard);
      ++reading_.shards;
      for (const RunResult& result : ended) add(result, shard);
    } catch (const Error& error) {
      reading_.problems.push_back({shard, error.problem()});
    }
  }
  ShardReading take() { return std::move(reading_); }

 private:
  void add(const RunResult& result, const fs::path& shard) {
    const auto [taken, is_new] = first_.try_emplace(result.key, Kept{});
    Kept& kept = taken->second;
    if (is_new) {
      const auto status = statuses_.find(result.key);
      const bool is_known = status != statuses_.end() && has_ended(status->second);
      const RunResult first = is_known ? known_.find(result.key).value() : result;
      const fs::path file = is_known ? database_ : shard / "results.db";
      kept = {fingerprint(first), origin(file, first), file};
      if (!is_known) {
        reading_.runs.push_back({result, shard, true});
        return;
      }
    }
    if (fingerprint(result) == kept.print) {
      reading_.runs.push_back({result, shard, false});
      return;
    }
    const fs::path other = shard / "results.db";
    reading_.conflicts.push_back(
        {result.key, kept.file, other,
         fmt::format("run {} has two results, of {} and of {}: the first is kept", result.key,
                     kept.origin, origin(other, result))});
  }

  struct Kept {
    std::string print, origin;
    fs::path file;
  };
  fs::path database_;
  const ResultsDatabase& known_;
  std::unordered_map<std::string, RunStatus> statuses_;  // of known_
  std::unordered_map<std::string, Kept> first_;          // by key, of those that shards have
  ShardReading reading_;
};

// Whether a run's folder may be moved to `folder`: nothing is there, or the same run unfinished.
bool has_room(const fs::path& folder, const std::string& key) {
  if (!fs::exists(folder)) return true;
  if (!fs::exists(folder / "manifest.json")) return false;
  try {
    return !has_ended(read_result(folder, key).status);
  } catch (const Error&) {
    return false;
  }
}

// The files of a run by name, and nothing else that may lie there; not the lock, which each folder
// has for itself. Weights are never changed, only replaced, so that a second name of the same file
// does where the file system has such.
void take_files(const fs::path& from, const fs::path& to) {
  for (const char* name : {"model.safetensors", "start.safetensors", "checkpoint.safetensors",
                           "config.toml", "metrics.jsonl", "manifest.json"}) {
    const fs::path file = from / name;
    if (!fs::is_regular_file(fs::symlink_status(file))) continue;
    std::error_code cannot_link;
    const bool is_weights = file.extension() == ".safetensors";
    if (is_weights) fs::create_hard_link(file, to / name, cannot_link);
    if (!is_weights || cannot_link) fs::copy_file(file, to / name);
  }
}

// Whether the run's folder was brought to DIR.
bool bring_folder(const fs::path& results, const ShardRun& run) {
  const std::string& key = run.result.key;
  const fs::path from = run.shard / "runs" / key, to = results / "runs" / key;
  if (!fs::is_regular_file(fs::symlink_status(from / "manifest.json")) || !has_room(to, key)) {
    return false;
  }
  if (fingerprint(read_result(from, key)) != fingerprint(run.result)) {
    throw Error(ExitCode::data,
                fmt::format("'{}' has another result than its database", from.string()));
  }
  const fs::path staging = results / ".merging";  // no experiment's name; also what a kill leaves
  fs::remove_all(staging);
  create_folder(staging / "run");
  take_files(from, staging / "run");
  create_folder(to.parent_path());
  if (fs::exists(to)) fs::rename(to, staging / "unfinished");
  fs::rename(staging / "run", to);
  fs::remove_all(staging);
  return true;
}

}  // namespace

ShardReading read_shards(const fs::path& results, const ResultsDatabase& known) {
  Reading reading(results, known);
  for (const Shard& shard : shards_in(results)) reading.read(shard_folder(results, shard));
  return reading.take();
}

MergeSummary merge_shards(const fs::path& results, ResultsDatabase& database) {
  ShardReading found = read_shards(results, database);
  MergeSummary summary;
  summary.shards = found.shards;
  summary.conflicts = std::move(found.conflicts);
  summary.problems = std::move(found.problems);
  std::vector<RunResult> added;
  for (const ShardRun& run : found.runs) {
    try {
      if (bring_folder(results, run)) ++summary.folders;
    } catch (const Error& error) {
      if (error.code() != ExitCode::data) throw;
      summary.problems.push_back({run.shard / "runs" / run.result.key, error.problem()});
    } catch (const fs::filesystem_error& error) {
      throw Error(ExitCode::failed,
                  fmt::format("cannot merge run {}: {}", run.result.key, error.code().message()),
                  "", "free some space, then merge again: nothing is lost");
    }
    if (run.is_new) added.push_back(run.result);
  }
  if (!added.empty()) database.record(added);
  summary.added = static_cast<int64_t>(added.size());
  summary.there = static_cast<int64_t>(found.runs.size()) - summary.added;
  return summary;
}

MergeSummary merge_shards(const fs::path& results) {
  if (shards_in(results).empty()) {
    throw Error(ExitCode::data, fmt::format("there are no shards in '{}'", results.string()),
                "a results folder with shards/K-of-M",
                "run posattn reproduce with --shard and this folder as --results first");
  }
  const FolderLock lock(results);
  ResultsDatabase database(results, ResultsDatabase::Access::write);
  import_recorded_runs(results, database);
  return merge_shards(results, database);
}

void describe(const std::vector<MergeConflict>& conflicts,
              const std::vector<ShardProblem>& problems,
              const std::function<void(const std::string&)>& notice) {
  if (!notice) return;
  for (const MergeConflict& conflict : conflicts) notice("conflict: " + conflict.message);
  for (const ShardProblem& problem : problems) {
    notice(fmt::format("left out: {}: {}", problem.place.string(), problem.message));
  }
}

}  // namespace posattn
