// Figures of posattn bound: bounds and measured gaps over an experiment's axis, and where the
// bounds of both architectures cross. SVG, drawn by gnuplot.
#pragma once

#include <string>

#include "posattn/bounds/crossing.h"
#include "posattn/bounds/experiment_bounds.h"
#include "posattn/experiments/experiment.h"

namespace posattn {

// Draws one task of the experiment: medians over seeds with the smallest and largest. A bound that
// double cannot hold is left out.
std::string draw_bounds(const Experiment& experiment, const bounds::ExperimentBounds& found,
                        const std::string& task);

std::string draw_crossing(const bounds::Crossing& crossing);

}  // namespace posattn
