// The results of experiments as one HTML page that needs nothing else: figures, medians, how they
// compare with the published results, how to make them again.
#pragma once

#include <string>
#include <vector>

#include "posattn/report/experiment/results.h"

namespace posattn {

// Throws Error(data) when there is nothing to show, Error(failed) when gnuplot cannot draw; without
// gnuplot the page has no figures.
std::string experiment_page(const std::string& title, const std::vector<ExperimentResults>& all);

}  // namespace posattn
