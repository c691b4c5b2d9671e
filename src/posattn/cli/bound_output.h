// What posattn bound prints.
#pragma once

#include <string>
#include <vector>

#include "posattn/bounds/bound_report.h"
#include "posattn/bounds/crossing.h"
#include "posattn/bounds/experiment_bounds.h"

namespace posattn {

// e^log with three digits, whatever its size: "0.0123", "4.56e+332748".
std::string number_of_log(double log);

// One model, factor by factor; with `all_norms` every matrix of the model too.
std::string bound_text(const bounds::BoundReport& report, bool all_norms);

// A line for each of several models.
std::string bound_table(const std::vector<bounds::BoundReport>& reports);

// A line for each run of an experiment.
std::string experiment_bounds_text(const Experiment& experiment,
                                   const bounds::ExperimentBounds& found);

std::string crossing_text(const bounds::Crossing& crossing);

}  // namespace posattn
