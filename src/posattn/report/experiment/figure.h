// The figure of an experiment, drawn by gnuplot: a row of up to three panels, one per task that has
// finished runs, then the next row; loss on a logarithmic axis, or accuracy from 0 to 1. Each line
// of the experiment has its own colour, dash and marker; the published results lie thin and light
// behind ours. A triangle at the edge of a panel marks a spread that goes on beyond it.
#pragma once

#include "posattn/bounds/crossing.h"
#include "posattn/bounds/experiment_bounds.h"
#include "posattn/experiments/comparison.h"
#include "posattn/experiments/curves.h"
#include "posattn/experiments/experiment.h"

namespace posattn {

enum class FigureFormat { svg, narrow_svg, png };

// The text of an <svg> element (720 pixels wide, or 320 with one panel above the other; the text is
// as large as a page's captions in both) or the bytes of a PNG file (1600 pixels wide). `name`, of
// letters and digits, tells the ids of two figures on one page apart. "" when no point of ours can
// be drawn. Throws Error(failed) when gnuplot cannot draw.
std::string draw_experiment(const Experiment& experiment, const std::vector<Curve>& curves,
                            const std::vector<PublishedPoint>& published, FigureFormat format,
                            const std::string& name = "figure");

// Figures of posattn bound, as SVG. The first shows bounds and measured gaps over an experiment's
// axis, for one of its tasks: medians over seeds with the smallest and largest. A bound that
// double cannot hold is left out.
std::string draw_bounds(const Experiment& experiment, const bounds::ExperimentBounds& found,
                        const std::string& task);

// Where the bounds of both architectures cross.
std::string draw_crossing(const bounds::Crossing& crossing);

}  // namespace posattn
