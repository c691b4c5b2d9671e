// The tables of an experiment's results and the notes on the published ones, as HTML.
#pragma once

#include <string>

#include "posattn/experiments/comparison.h"
#include "posattn/report/experiment/results.h"

namespace posattn {

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

}  // namespace posattn
