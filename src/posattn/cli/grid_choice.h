// The options that `reproduce`, `submit` and `compare` share: they choose runs of an experiment and
// the results folder.
#pragma once

#include "posattn/experiments/curves.h"
#include "posattn/experiments/experiment.h"
#include "posattn/experiments/runner.h"
#include "posattn/report/experiment/results.h"

namespace CLI {
class App;
}

namespace posattn {

struct GridChoice {
  std::string experiment, seeds, values;
  ExperimentChanges changes;
  std::string results = "results";
  bool fail_fast = false;
};

void add_grid_options(CLI::App& command, GridChoice& choice);

// The part that is trained.
Experiment chosen_part(const GridChoice& choice);
// What tables and figures show: all tasks, lines, seeds and values.
Experiment whole_experiment(const GridChoice& choice);

// The options of whole_experiment, and all that were given but --results.
std::vector<std::string> whole_words(const GridChoice& choice);
std::vector<std::string> chosen_words(const GridChoice& choice);

// What `posattn reproduce` prints.

// "200 runs in results: 20 there (1 diverged), 180 to train (2 begun, 1 failed before)"
std::string survey_line(const GridSurvey& found, const std::filesystem::path& results);

// What is there and what is missing, by task and line; of the shard, if there is one.
std::string survey_table(const Experiment& chosen, const std::filesystem::path& results,
                         const std::optional<Shard>& shard);
std::string survey_json(const Experiment& chosen, const std::filesystem::path& results,
                        const std::optional<Shard>& shard);
// "shard 3/16 of value-range: 12 runs, 12 ended"
std::string shard_line(const Experiment& whole, const Shard& shard, const GridSummary& summary);

// The median of the runs at a few places of the axis, one row per task and line.
std::string median_table(const Experiment& whole, const std::vector<Curve>& curves);

// The files, a line each, and why there is no figure if so.
std::string file_list(const ExperimentFiles& files);

std::string reproduce_json(const Experiment& whole, const std::filesystem::path& results,
                           const GridSummary& summary, const ExperimentFiles& files,
                           const std::vector<Curve>& curves);

}  // namespace posattn
