// Model files as people name them: a file, a run folder, or a folder of runs.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "posattn/model/model_file.h"

namespace CLI {
class App;
}  // namespace CLI

namespace posattn {

// Every model file meant by `name`, sorted. Throws Error(data) when there is none.
std::vector<std::filesystem::path> find_models(const std::string& name);

// The one model file meant by `name`. Throws Error(data) when there are several.
std::filesystem::path find_model(const std::string& name);

// --architecture, --task, --length and --heads: what a file without our metadata may leave open.
void add_hint_flags(CLI::App& command, ModelHints& hints);

}  // namespace posattn
