// What the figure of an experiment shows, as plain data: one panel per task, in each a curve per
// line of the experiment and the published one.
#pragma once

#include "posattn/experiments/comparison.h"
#include "posattn/experiments/curves.h"
#include "posattn/report/plot/figure.h"
#include "posattn/report/plot/line_style.h"

namespace posattn {

struct PanelLine {
  std::vector<BandPoint> ours;       // one per value of the axis; the median is NaN where none is
  std::vector<BandPoint> published;  // by x, inside the axis
};

struct Panel {
  std::string task;
  std::vector<PanelLine> lines;  // as experiment.lines
};

// A panel per task of the experiment, with its test split. Points of a single run stand alone where
// each is of another run: a line would show the differences between seeds as if they followed the
// axis. Along the scale c a line is one network's, and stays.
std::vector<Panel> panels_of(const Experiment& experiment, const std::vector<Curve>& curves,
                             const std::vector<PublishedPoint>& published);

// The style (report/plot/line_style.h) of each line.
std::vector<int> line_styles(const Experiment& experiment);

// Can the figure's axis (logarithmic, or from 0 to the metric's greatest value) show the value?
bool drawable(double value, const Metric& metric);

// Does a line lead from the point before to this one? Not where one of the two cannot be drawn or
// stands alone; false also for the first and beyond the last.
bool joined(const std::vector<BandPoint>& points, size_t index, const Metric& metric);
bool any_joined(const std::vector<BandPoint>& points, const Metric& metric);

// [lowest, highest] for the vertical axis: from 0 on a linear one. Else whole decades around every
// median, and as much of the bands as lies within a factor of 100 of a median, so that one run that
// went astray does not flatten the rest. Nothing where no point can be drawn.
struct AxisRange {
  double low = 0, high = 0;
};
std::optional<AxisRange> value_range(const Panel& panel, const Metric& metric);

// Does the spread of a point that is drawn go on beyond the axis?
bool is_clipped_below(const BandPoint& point, const Metric& metric, const AxisRange& range);
bool is_clipped_above(const BandPoint& point, const Metric& metric, const AxisRange& range);
bool has_clipped_point(const Panel& panel, const Metric& metric);

// Sentences under the figure: how many runs a point stands for, what diverged, what is missing,
// what bands and thin lines are.
std::string figure_note(const Experiment& experiment, const std::vector<Curve>& curves,
                        const std::vector<PublishedPoint>& published);

}  // namespace posattn
