// The lines that `posattn certify --rows FILE` writes, read again.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace posattn::bounds {

// The bound on the risk of each run's randomised network; of several lines the last one counts.
// Throws Error(data) with the line.
std::map<std::string, double> certified_risks(std::string_view text, const std::string& file);

}  // namespace posattn::bounds
