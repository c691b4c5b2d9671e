#include "posattn/experiments/missing_runs.h"

#include <map>
#include <tuple>

namespace posattn {

std::vector<MissingRuns> missing_runs(const Experiment& experiment, const FindResult& find) {
  std::vector<MissingRuns> places;
  std::map<std::tuple<std::string, std::string, std::optional<double>>, std::size_t> known;
  for (const ExperimentRun& run : runs_of(experiment)) {
    const auto [at, is_new] = known.try_emplace({run.task, run.line, run.x}, places.size());
    if (is_new) places.push_back({.task = run.task, .line = run.line, .x = run.x, .failure = {}});
    MissingRuns& place = places[at->second];
    ++place.runs;
    const std::optional<RunResult> result = find(run.key);
    if (result && result->status != RunStatus::failed) continue;
    ++place.missing;
    if (!result) continue;
    if (place.failed++ == 0) place.failure = result->message;
  }
  std::erase_if(places, [](const MissingRuns& place) { return place.missing == 0; });
  return places;
}

}  // namespace posattn
