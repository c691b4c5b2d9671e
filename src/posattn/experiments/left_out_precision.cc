#include "posattn/experiments/left_out_precision.h"

#include <algorithm>
#include <vector>

namespace posattn {

std::string precision_to_train(const Experiment& experiment, const std::filesystem::path& results) {
  if (experiment.states_precision || exists(results / experiment.output_name)) return "";
  const std::vector<ExperimentRun> runs = runs_of(experiment);
  const bool in_tf32 = std::ranges::all_of(runs, [](const ExperimentRun& run) {
    RunConfig config = run.config;
    config.precision = "auto";
    return precision_used(config) == "tf32";
  });
  return in_tf32 ? "tf32" : "";
}

std::string precision_to_read(const Experiment& experiment, const std::filesystem::path& results) {
  return !exists(results / experiment.output_name) &&
                 exists(results / (experiment.output_name + "-tf32"))
             ? "tf32"
             : "";
}

}  // namespace posattn
