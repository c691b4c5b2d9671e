// The experiments of a results folder, as their page shows them.
#pragma once

#include <filesystem>
#include <map>

#include "posattn/experiments/comparison.h"
#include "posattn/experiments/curves.h"

namespace posattn {

// How far an experiment is, and what computed its runs. Counts the distinct runs of the experiment:
// done + diverged + failed + missing = runs.
struct RunTally {
  int64_t runs = 0;
  int64_t done = 0, diverged = 0, failed = 0, missing = 0;
  double seconds = 0;  // wall-clock time in which these runs were trained
  // How many runs by device and precision, and by version and commit of the program.
  std::map<std::pair<std::string, std::string>, int64_t> execution, builds;

  bool any() const { return done + diverged > 0; }
};

// When a run was trained: for `seconds`, until `ended` (UTC, 2025-01-31T12:00:00Z).
struct TrainingTime {
  std::string ended;
  double seconds = 0;
};
// The wall-clock time in which at least one of the runs was trained: the length of the union of
// their times. Runs that a GPU trains in lockstep each take as long as all of them together. A run
// that does not tell when it ended counts by itself.
double wall_clock_seconds(const std::vector<TrainingTime>& runs);

RunTally tally_runs(const Experiment& experiment, const FindResult& find);

struct ExperimentResults {
  Experiment experiment;
  std::vector<Curve> curves;
  std::vector<PublishedPoint> published;
  RunTally tally;
  std::string command;   // that makes them
  std::string manifest;  // manifest.json, or "" where there is none
};

// Reads those of `experiments` (names or files; none: all that are part of the program) that have a
// finished run in `folder`, each whole and with what --quick and --epochs made of it. Throws
// Error(data) when there is none, or none of one that is named.
std::vector<ExperimentResults> read_results(const std::filesystem::path& folder,
                                            const std::vector<std::string>& experiments);

// Throws Error(data) when there is nothing to show, Error(failed) when gnuplot cannot draw; without
// gnuplot the page has no figures.
std::string experiment_page(const std::string& title, const std::vector<ExperimentResults>& all);

// The tables of an experiment's results and the notes on the published ones, as HTML.

// The medians over the runs in the test split: for each task a row per line that has runs, and a
// column per x.
std::string median_table(const ExperimentResults& results);

// For each task a row per line that has something to show: how the loss grows with c, and how the
// curve compares with the published one. "" where there is neither.
std::string curve_table(const ExperimentResults& results, const Comparison& comparison);

// The points of the test split that do not agree; "" for none.
std::string disagreement_table(const Experiment& experiment, const Comparison& comparison);

// "agrees", "differs", or "reduced": a training shorter than the published one is not expected to
// agree, and says nothing about the results when it does not.
std::string verdict_text(bool agrees, const Experiment& experiment);

// growth_in_scale of one of our curves.
Growth our_growth(const ExperimentResults& results, const std::string& task,
                  const std::string& line);

// What a reader of the published results should know, with our own numbers where there are some.
std::string audit_notes(const std::vector<ExperimentResults>& all);

// The files of an experiment: its table, its figure, and how they came about.

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
