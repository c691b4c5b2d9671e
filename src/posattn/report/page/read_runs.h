// From the folders of finished (or stopped) runs to what a report shows.
#pragma once

#include <filesystem>
#include <vector>

#include "posattn/report/page/report_input.h"

namespace posattn {

// Each path is a run's folder or a folder that holds such folders, at any depth. Runs are ordered
// by architecture and seed. The first run of each architecture that has a model shows its
// attention: on one input of the training range and, where attention depends on the data, on the
// same input times the largest test scale. A run whose manifest or metrics cannot be read is left
// out, with a line that says why. Throws Error(data) when no run is left, a model is broken, or
// settings other than architecture, seeds and how it was computed (device, precision, path) differ:
// such runs do not compare.
ReportInput read_runs(const std::vector<std::filesystem::path>& paths);

}  // namespace posattn
