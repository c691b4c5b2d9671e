// A batch script for Slurm that trains an experiment: plain sh, which a user can read and change.
// Each task of an array trains one shard (shards.h), puts itself back into the queue while runs of
// it are missing, and merges what is there. It ends, because each attempt must record at least one
// more epoch and their number is finite.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace posattn {

struct SlurmJob {
  std::string name;       // of the job, the script and the log
  std::string partition;  // empty: the cluster's default
  std::string time = "4:00:00";
  int64_t array = 1;                                  // shards, each a task
  int64_t nodes = 0;                                  // tasks at a time; 0: as Slurm likes
  int64_t gpus = 0;                                   // of each task
  int64_t threads = 4;                                // of each task
  std::vector<std::string> more;                      // further options of sbatch, one each
  std::filesystem::path program, directory, results;  // absolute; the directory: of other paths
  std::vector<std::string> arguments;                 // of the program: reproduce ...
  std::string command_line;                           // that wrote the script
};

// Two minutes before the time is up runs are told to save their checkpoints.
constexpr int64_t seconds_to_save = 120;

// "30", "30:00", "4:00:00", "1-12", "1-12:30", "1-12:30:00" in seconds; Error(usage) for anything
// else and for less than five minutes.
int64_t slurm_seconds(std::string_view time);

// Throws Error(usage) for what cannot be: no shard, a shard with two GPUs, ...
void validate(const SlurmJob& job);

std::filesystem::path slurm_folder(const SlurmJob& job);  // RESULTS/slurm: the script, the log
std::filesystem::path slurm_log(const SlurmJob& job);     // with Slurm's own patterns: %j
std::string slurm_script(const SlurmJob& job);

}  // namespace posattn
