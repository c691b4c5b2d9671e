// manifest.json: what was run, with what, when, and how it ended.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

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

// {"version": ..., "commit": ..., "compiler": ..., "flags": ..., "build_type": ...}
nlohmann::ordered_json build_json();

std::string to_json(const Manifest& manifest);
Manifest manifest_from_json(std::string_view json, std::string_view name);  // throws Error(data)

std::string utc_now();  // 2025-01-31T12:00:00Z

// Whether two runs have the same settings, and if not, which differ.

// A run's settings, a flat JSON object. Those recorded before runs named their device and precision
// get what was then meant: fp32, on the CPU. Throws Error(data), naming `what`, for anything else.
nlohmann::json read_settings(std::string_view json, const std::string& what);

// Both are settings as above; keys in `neutral` may differ. Empty when they agree, otherwise text
// such as "epochs is 2001 there, 5 here".
std::string settings_difference(std::string_view there, std::string_view here,
                                const std::vector<std::string>& neutral);

}  // namespace posattn
