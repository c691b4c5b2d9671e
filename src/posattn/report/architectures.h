// The runs of a report grouped by architecture: medians and spread over seeds, never the best one,
// and never over runs that were computed in different ways.
#pragma once

#include <string>
#include <vector>

#include "posattn/evaluation/summary.h"
#include "posattn/report/page/report_input.h"
#include "posattn/report/plot/figure.h"

namespace posattn {

struct ArchitectureSummary {
  std::string name;                    // as group_name
  std::vector<const RunReport*> runs;  // point into the input
  int64_t unfinished = 0;              // runs whose status is not "done"
  std::vector<ScaleSummary> tests;     // ascending in c, over the runs that have this c
};

// "positional", or "positional (cuda, tf32)" where runs differ in how they were computed.
std::string group_name(const RunReport& run);

// In the order in which they first appear.
std::vector<ArchitectureSummary> group_by_architecture(const ReportInput& input);

// Mean squared error against c.
FigureRequest test_figure(const std::vector<ArchitectureSummary>& architectures);

// Training and validation loss against the epoch; long curves are thinned out evenly.
FigureRequest loss_figure(const std::vector<ArchitectureSummary>& architectures);

}  // namespace posattn
