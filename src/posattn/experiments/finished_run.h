// The result of a run, as its folder tells it.
#pragma once

#include <filesystem>
#include <string>

#include "posattn/results/results_database.h"

namespace posattn {

// The result of a run that ended. A run that did not end well has no losses and no tests, whatever
// its last epochs gave. Throws Error(data) where the folder's manifest does not tell.
RunResult read_result(const std::filesystem::path& run_folder, const std::string& key);

// Reads what the folder's manifest says.
RunResult result_of_manifest(const std::string& manifest, const std::filesystem::path& run_folder,
                             const std::string& key);

}  // namespace posattn
