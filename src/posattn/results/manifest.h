// manifest.json: what was run, with what, when, and how it ended.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace posattn {

enum class RunStatus { running, done, diverged, interrupted, failed };
std::string_view to_string(RunStatus status);
RunStatus run_status_from(std::string_view name);  // throws Error(data)
bool has_ended(RunStatus status);                  // by itself: done or diverged

// The build (version, commit, compiler, flags) is added when the manifest is written.
struct Manifest {
  std::string configuration;                  // a flat JSON object
  std::map<std::string, std::string> seeds;   // as used: run, data, weights
  std::map<std::string, std::string> engine;  // path, device, threads
  std::map<std::string, std::string> libraries;
  std::string command_line;
  std::string started, ended;  // UTC; `ended` is empty while the run goes on
  RunStatus status = RunStatus::running;
  std::string message;        // why the run diverged or failed
  int64_t epoch = 0;          // completed
  std::string final_metrics;  // the last metrics line, or ""
};

std::string to_json(const Manifest& manifest);
Manifest manifest_from_json(std::string_view json, std::string_view name);  // throws Error(data)

std::string utc_now();  // 2025-01-31T12:00:00Z

}  // namespace posattn
