// The files of an experiment: its table, its figure, and how they came about.
#pragma once

#include <filesystem>
#include <string>

#include "posattn/experiments/curves.h"
#include "posattn/report/experiment/results.h"

namespace posattn {

struct ExperimentFiles {
  std::filesystem::path csv, svg, png, runs, manifest;  // svg and png are empty where not drawn
  std::string problem;                                  // why there is no figure, or empty
};

// Writes OUTPUT_NAME.csv, OUTPUT_NAME.svg, OUTPUT_NAME.png, runs.jsonl (the single runs behind the
// table, recorded_runs.h) and manifest.json to the folder
// `results`/OUTPUT_NAME, each as a whole or not at all. `whole` is the experiment with all its
// tasks, lines and seeds, also when only a part was trained. Without gnuplot, or when no point can
// be drawn, there is no figure (`problem`), and one of an earlier time is removed. Throws
// Error(data) when the database has no finished run of the experiment, Error(failed) when a file
// cannot be written.
ExperimentFiles write_experiment_files(const std::filesystem::path& results,
                                       const Experiment& whole, const ResultsDatabase& database,
                                       const std::string& command_line);

// manifest.json: the program, the experiment with every setting, how far it is, what computed it.
std::string experiment_manifest(const Experiment& experiment, const RunTally& tally,
                                const std::string& command_line);

}  // namespace posattn
