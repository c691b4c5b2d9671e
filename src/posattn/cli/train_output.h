// What `posattn train` prints when its runs have ended.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "posattn/training/fleet.h"

namespace posattn {

// Per architecture, over the seeds: median, smallest and largest final train and validation loss
// and test error of every scale.
std::string outcome_table(const std::vector<RunOutcome>& outcomes);
std::string outcome_json(const std::filesystem::path& out, const std::vector<RunOutcome>& outcomes);

}  // namespace posattn
