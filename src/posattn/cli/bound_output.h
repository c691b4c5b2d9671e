// What posattn bound prints.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "posattn/bounds/bound_report.h"

namespace posattn {

// e^log with three digits, whatever its size: "0.0123", "4.56e+332748".
std::string number_of_log(double log);

// One model, factor by factor; with `all_norms` every matrix of the model too.
std::string bound_text(const bounds::BoundReport& report, bool all_norms);

// A line for each of several models.
std::string bound_table(const std::vector<bounds::BoundReport>& reports);

nlohmann::ordered_json bound_json(const bounds::BoundReport& report);

}  // namespace posattn
