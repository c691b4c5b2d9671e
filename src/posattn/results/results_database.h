// results.db: the finished runs of a results folder, in SQLite. A run is committed at once, when it
// ends; the database is only ever opened by one writing process (the folder is locked), by any
// number of reading ones.
#pragma once

#include <filesystem>
#include <memory>
#include <unordered_map>

#include "posattn/evaluation/measurement.h"
#include "posattn/results/manifest.h"

namespace posattn {

// How one run ended.
struct RunResult {
  std::string key;                     // ExperimentRun::key
  std::string configuration;           // a flat JSON object, as in the manifest
  RunStatus status = RunStatus::done;  // done, diverged or failed
  std::string message;                 // why it diverged or failed
  int64_t epochs = 0, steps = 0;
  double seconds = 0;  // of training, over all sittings
  std::string device;  // "cpu" or "cuda"
  std::string version, commit, ended;
  // After the last epoch. Losses in training and validation have no axis.
  std::vector<Measurement> measurements;
};

class ResultsDatabase {
 public:
  ResultsDatabase();  // an empty one in memory, without a file

  enum class Access { read, write };
  // Makes an empty database when writing and there is none. One of an older format is brought to
  // ours, in the file when writing, in memory when reading. Throws Error(data) when the file is
  // missing (reading), is no such database, was made by a newer program, or holds a run that does
  // not have the values it was recorded with.
  ResultsDatabase(const std::filesystem::path& folder, Access access);
  ~ResultsDatabase();
  ResultsDatabase(ResultsDatabase&&) noexcept;
  ResultsDatabase& operator=(ResultsDatabase&&) noexcept;

  void record(const RunResult& result);  // replaces what is there of the key; durable on return
  void record(const std::vector<RunResult>& results);  // all or none
  std::optional<RunResult> find(const std::string& key) const;
  std::vector<RunResult> all() const;                           // by key
  std::unordered_map<std::string, RunStatus> statuses() const;  // of every run, by key

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

// Whether the folder has a database that holds something: a process makes the file before the
// tables.
bool has_database(const std::filesystem::path& folder);

// The checksum of everything recorded, which results.db keeps with each run: a value that something
// changed later is noticed. The order of the measurements does not matter. Lines of runs.jsonl have
// a checksum of their own (recorded_runs.h).
std::string checksum_of(const RunResult& result);

// Whether a run that this version of posattn computed may stand there without a checksum: in a
// database that 0.1.0 began.
bool may_lack_checksum(std::string_view version);

}  // namespace posattn
