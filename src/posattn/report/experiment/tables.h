// The tables of an experiment's results, as HTML.
#pragma once

#include <string>

#include "posattn/experiments/comparison.h"
#include "posattn/report/experiment/results.h"

namespace posattn {

// Median over the runs of the test split: by task a row per line that has runs, a column per x.
std::string median_table(const ExperimentResults& results);

// By task a row per line that has something to show: how the loss grows with c, and how the curve
// lies beside the published one. "" where there is neither.
std::string curve_table(const ExperimentResults& results, const Comparison& comparison);

// The points of the test split that do not agree; "" for none.
std::string disagreement_table(const Experiment& experiment, const Comparison& comparison);

// "agrees", "differs", or "reduced": a training shorter than the published one is not expected to
// agree, and says nothing about the results when it does not.
std::string verdict_text(bool agrees, const Experiment& experiment);

// growth_in_scale of one of our curves.
Growth our_growth(const ExperimentResults& results, const std::string& task,
                  const std::string& line);

}  // namespace posattn
