// The runs of a report grouped by architecture: medians and spread over seeds, never the best one,
// and never over runs that were computed in different ways.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "posattn/evaluation/axes/evaluation_axis.h"
#include "posattn/evaluation/metrics/metric.h"
#include "posattn/evaluation/summary.h"
#include "posattn/report/page/report_input.h"
#include "posattn/report/plot/figure.h"

namespace posattn {

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
