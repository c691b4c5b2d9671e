// `posattn bench --long`: inference against the length, as JSON and as a figure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace posattn {

nlohmann::ordered_json measure_long(const std::vector<int>& lengths, int threads, double seconds);
std::string long_figure(const nlohmann::ordered_json& rows);

}  // namespace posattn
