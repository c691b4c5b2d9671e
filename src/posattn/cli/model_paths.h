// Model files as people name them: a file, a run folder, or a folder of runs.
#pragma once

#include "posattn/model/file/model_file.h"
#include "posattn/training/run_config.h"

namespace CLI {
class App;
}  // namespace CLI

namespace posattn {

struct FoundModels {
  std::vector<std::filesystem::path> models;      // sorted, at least one
  std::vector<std::filesystem::path> unfinished;  // folders of runs that have no model yet
};

// Every model file meant by `name`. Throws Error(data) when there is none.
FoundModels find_models(const std::string& name);

// The one model file meant by `name`. Throws Error(data) when there are several, and names the
// first that suits.
std::filesystem::path find_model(const std::string& name,
                                 bool (*suits)(const std::filesystem::path& model) = nullptr);

// A model or run that is named twice, also by another path, counts once.
class NamedPaths {
 public:
  // Whether this file or folder comes for the first time.
  bool add(const std::filesystem::path& path);

 private:
  std::set<std::filesystem::path> seen_;
};

// Every model file that one of the names means, in their order. Throws Error(data) for a name that
// means none.
std::vector<std::filesystem::path> find_named_models(const std::vector<std::string>& names);

// The model of a file. Rows of several lengths need a known task, which states the lengths;
// otherwise Error(data) names the file.
Model read_model(const std::filesystem::path& path, const ModelHints& hints);

// The settings in the folder of a run's model; nothing for a model file alone.
std::optional<RunConfig> settings_of_run(const std::filesystem::path& model);

// Throws Error(data) where they are those of another model.
void check_settings(const std::filesystem::path& path, const RunConfig& settings,
                    const Model& model);

// --architecture, --task, --length, --heads and --vocabulary: what a file from other tools, or of
// an older version, may leave open.
inline constexpr const char* hint_group = "For files from elsewhere";
void add_hint_flags(CLI::App& command, ModelHints& hints);

}  // namespace posattn
