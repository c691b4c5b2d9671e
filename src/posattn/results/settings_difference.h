// Whether two runs have the same settings, and if not, which differ.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace posattn {

// Both are flat JSON objects; keys in `neutral` may differ. Empty when they agree, otherwise text
// such as "epochs is 2001 there, 5 here". Throws Error(data) when `there` is no JSON object.
std::string settings_difference(std::string_view there, std::string_view here,
                                const std::vector<std::string>& neutral);

}  // namespace posattn
