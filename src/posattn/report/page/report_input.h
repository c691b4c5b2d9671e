// What a report shows, as plain data: filled by read_runs from run folders, or by hand.
#pragma once

#include <filesystem>
#include <map>

#include "posattn/evaluation/axes/evaluation_axis.h"
#include "posattn/evaluation/measurement.h"
#include "posattn/evaluation/metrics/metric.h"
#include "posattn/evaluation/summary.h"
#include "posattn/report/plot/figure.h"
#include "posattn/report/svg/attention_svg.h"
#include "posattn/tasks/loss.h"

namespace posattn {

struct LossPoint {
  int64_t epoch = 0;
  double train = 0;
  std::optional<double> validation;
};

struct RunReport {
  std::string architecture;
  std::string execution;  // "cuda, tf32": what differs from other runs in how it was computed
  int64_t seed = 0;
  std::string status;  // "done", "diverged", ...
  double seconds = 0;  // of training
  std::vector<LossPoint> curve;
  std::vector<Measurement> tests;  // after the last epoch
  std::vector<AttentionMaps> attention;
  std::string manifest;    // as JSON, shown as it is
  std::string model = {};  // its file, where it has one
};

struct ReportInput {
  std::string title;
  std::string task;
  int length = 0;
  double range = 2;                 // trained on values in [-range, range]
  bool numbers = true;              // nodes hold numbers alone, no tokens
  Loss loss = Loss::squared_error;  // of training
  std::vector<RunReport> runs;
  std::vector<std::string> commands;       // that make this again
  std::vector<std::string> left_out = {};  // runs that cannot be read, and why, a line for each
  std::string playground = {};  // the name of a page next to this one with its models, or ""
};

// Reads the folders of finished or stopped runs. Each path is a run's folder or a folder that holds
// such folders, at any depth. Runs are ordered by architecture and seed. The first run of each
// architecture that has a model shows its attention: on one input of the training range and, where
// attention depends on the data, on the same input times the largest test scale. A run whose
// manifest or metrics cannot be read is left out, with a line that says why. Throws Error(data)
// when no run is left, a model is broken, or settings other than architecture, seeds and how it was
// computed (device, precision, path) differ: such runs do not compare.
ReportInput read_runs(const std::vector<std::filesystem::path>& paths);

// Throws Error(data) when there is no run to show, Error(failed) when gnuplot cannot draw; without
// gnuplot the page has no figures.
std::string report_page(const ReportInput& input);

// The runs of a report grouped by architecture: medians and spread over seeds, never the best one,
// and never over runs that were computed in different ways.

struct ArchitectureSummary {
  std::string name;                    // as group_name
  std::vector<const RunReport*> runs;  // point into the input
  int64_t unfinished = 0;              // runs whose status is not "done"
  Loss loss = Loss::squared_error;     // of training

  // The spread of a metric at each x of an axis, ascending, over the runs that have this x.
  std::map<double, Spread> tests(std::string_view axis, const Metric& metric) const;
};

// "positional", or "positional (cuda, tf32)" where runs differ in how they were computed.
std::string group_name(const RunReport& run);

// In the order in which they first appear.
std::vector<ArchitectureSummary> group_by_architecture(const ReportInput& input);

// Those along which some run was tested: the known ones first, then those of the task.
std::vector<EvaluationAxis> shown_axes(const ReportInput& input);

// The style of each in figures and tables.
std::vector<int> styles_of(const std::vector<ArchitectureSummary>& architectures);

// What the runs were trained on.
const Metric& loss_of(const std::vector<ArchitectureSummary>& architectures);

// A metric against x.
FigureRequest test_figure(const std::vector<ArchitectureSummary>& architectures,
                          const EvaluationAxis& axis, const Metric& metric);

// Training and validation loss against the epoch; long curves are thinned out evenly.
FigureRequest loss_figure(const std::vector<ArchitectureSummary>& architectures);

}  // namespace posattn
