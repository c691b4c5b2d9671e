// The experiments of a results folder, as their page shows them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "posattn/experiments/comparison.h"
#include "posattn/experiments/curves.h"
#include "posattn/report/experiment/run_tally.h"

namespace posattn {

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

// Throws Error(data) when there is nothing to show, Error(failed) when gnuplot cannot draw.
std::string experiment_page(const std::string& title, const std::vector<ExperimentResults>& all);

}  // namespace posattn
