#include "posattn/report/experiment/run_tally.h"

#include <time.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

namespace posattn {
namespace {

// On the CPU products are always fp32, whatever was asked for.
std::string precision_of(const RunResult& result) {
  if (result.device == "cpu") return "fp32";
  const auto settings = nlohmann::json::parse(result.configuration, nullptr, false);
  const bool known =
      settings.is_object() && settings.contains("precision") && settings["precision"].is_string();
  return known ? settings["precision"].get<std::string>() : "unknown";
}

std::optional<double> seconds_since_1970(const std::string& utc) {
  std::tm time{};
  const char* end = strptime(utc.c_str(), "%Y-%m-%dT%H:%M:%SZ", &time);
  if (end == nullptr || *end != '\0') return {};
  return static_cast<double>(timegm(&time));
}

}  // namespace

double wall_clock_seconds(const std::vector<TrainingTime>& runs) {
  double seconds = 0;
  std::vector<std::pair<double, double>> spans;  // begin, end
  for (const TrainingTime& run : runs) {
    if (!(run.seconds > 0)) continue;
    if (const auto end = seconds_since_1970(run.ended)) {
      spans.emplace_back(*end - run.seconds, *end);
    } else {
      seconds += run.seconds;
    }
  }
  std::ranges::sort(spans);
  double covered = -std::numeric_limits<double>::infinity();  // all before it is counted
  for (const auto& [begin, end] : spans) {
    if (end <= covered) continue;
    seconds += end - std::max(begin, covered);
    covered = end;
  }
  return seconds;
}

RunTally tally_runs(const Experiment& experiment, const FindResult& find) {
  RunTally tally;
  std::vector<TrainingTime> times;
  for (const ExperimentRun& run : each_once(runs_of(experiment))) {
    ++tally.runs;
    const std::optional<RunResult> result = find(run.key);
    if (!result) {
      ++tally.missing;
      continue;
    }
    ++(result->status == RunStatus::done       ? tally.done
       : result->status == RunStatus::diverged ? tally.diverged
                                               : tally.failed);
    times.push_back({result->ended, result->seconds});
    ++tally.execution[{result->device, precision_of(*result)}];
    ++tally.builds[{result->version, result->commit}];
  }
  tally.seconds = wall_clock_seconds(times);
  return tally;
}

}  // namespace posattn
