// The folder of one run, its files and its rules:
//   model.safetensors       the final weights
//   start.safetensors       the first ones, where they came from a model file
//   checkpoint.safetensors  everything needed to go on
//   config.toml             repeats the run (train --config)
//   metrics.jsonl           one JSON object per epoch
//   manifest.json           what was run, with what, when, and how it ended
// A folder belongs to one configuration and to one process at a time.
#pragma once

#include <optional>

#include "posattn/base/file.h"
#include "posattn/results/manifest.h"

namespace posattn {

class RunFolder {
 public:
  // Takes the folder (making it if need be) for a run of this configuration, a flat JSON object.
  // Throws Error(configuration) when the folder holds something else or another run or, without
  // `resume`, this one (keys in `neutral` may differ), and Error(failed) when it is in use or
  // cannot be written. What a killed process left half-written is removed.
  RunFolder(const std::filesystem::path& folder, const std::string& configuration,
            const std::vector<std::string>& neutral, bool resume);

  const std::filesystem::path& path() const { return folder_; }
  std::filesystem::path model() const { return folder_ / "model.safetensors"; }
  std::filesystem::path start() const { return folder_ / "start.safetensors"; }
  std::filesystem::path checkpoint() const { return folder_ / "checkpoint.safetensors"; }
  std::filesystem::path config() const { return folder_ / "config.toml"; }
  std::filesystem::path metrics() const { return folder_ / "metrics.jsonl"; }
  std::filesystem::path manifest() const { return folder_ / "manifest.json"; }

  // The manifest found when the folder was taken; absent for a new run.
  const std::optional<Manifest>& previous() const { return previous_; }

  // Removes a folder that holds nothing but its lock: that of a run which never started.
  void remove_if_unused() const;

  void write_config(const std::string& toml) const;
  void write_manifest(const Manifest& manifest) const;

  // Appends one line, whole or not at all.
  void append_metrics(const std::string& json_line) const;
  // Returns when all lines are on the disk, where a power cut does not reach them.
  void sync_metrics() const;
  // Drops lines after `epoch` and a torn last one, so a resumed file reads as if uninterrupted.
  void drop_metrics_after(int64_t epoch) const;
  void replace_last_metrics(const std::string& json_line) const;
  std::vector<std::string> metrics_lines() const;  // those that are whole

 private:
  std::filesystem::path folder_;
  FolderLock lock_;
  std::optional<Manifest> previous_;
};

}  // namespace posattn
