// The result of a run, as its folder tells it.
#pragma once

#include <filesystem>
#include <string>

#include "posattn/results/results_database.h"

namespace posattn {

// Of a run that ended. One that did not end well has no losses and no tests, whatever its last
// epochs gave. Throws Error(data) where the folder's manifest does not tell.
RunResult read_result(const std::filesystem::path& run_folder, const std::string& key);

// In two steps, where the folder's manifest is read by another process.
std::string read_manifest(const std::filesystem::path& run_folder);
RunResult result_of_manifest(const std::string& manifest, const std::filesystem::path& run_folder,
                             const std::string& key);

}  // namespace posattn
