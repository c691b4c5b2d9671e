// The report as one HTML page that needs nothing else: no network, no script, no other file.
#pragma once

#include <string>

#include "posattn/report/page/report_input.h"

namespace posattn {

// Throws Error(data) when there is no run to show, Error(failed) when gnuplot cannot draw; without
// gnuplot the page has no figures.
std::string report_page(const ReportInput& input);

}  // namespace posattn
