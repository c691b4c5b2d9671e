#include "posattn/report/run_tally.h"

#include <nlohmann/json.hpp>
#include <set>

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

}  // namespace

RunTally tally_runs(const Experiment& experiment, const FindResult& find) {
  RunTally tally;
  std::set<std::string> keys;
  for (const ExperimentRun& run : runs_of(experiment)) {
    if (!keys.insert(run.key).second) continue;
    ++tally.runs;
    const std::optional<RunResult> result = find(run.key);
    if (!result) {
      ++tally.missing;
      continue;
    }
    switch (result->status) {
      case RunStatus::done:
        ++tally.done;
        break;
      case RunStatus::diverged:
        ++tally.diverged;
        break;
      case RunStatus::running:
      case RunStatus::interrupted:
      case RunStatus::failed:
        ++tally.failed;
        break;
    }
    tally.seconds += result->seconds;
    ++tally.execution[{result->device, precision_of(*result)}];
    ++tally.builds[{result->version, result->commit}];
  }
  return tally;
}

}  // namespace posattn
