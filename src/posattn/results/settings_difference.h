// Whether two runs have the same settings, and if not, which differ.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace posattn {

// A run's settings, a flat JSON object. Those recorded before runs named their device and precision
// get what was then meant: fp32, on the CPU. Throws Error(data), naming `what`, for anything else.
nlohmann::json read_settings(std::string_view json, const std::string& what);

// Both are settings as above; keys in `neutral` may differ. Empty when they agree, otherwise text
// such as "epochs is 2001 there, 5 here".
std::string settings_difference(std::string_view there, std::string_view here,
                                const std::vector<std::string>& neutral);

}  // namespace posattn
