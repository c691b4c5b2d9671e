#include "posattn/cli/model_paths.h"

#include <algorithm>

#include "posattn/base/file.h"
#include "posattn/cli/commands.h"
#include "posattn/results/manifest.h"
#include "posattn/tasks/task.h"

namespace posattn {
namespace {

namespace fs = std::filesystem;

constexpr const char* expected_models = "a model file, a run folder or a folder of runs";

Manifest read_manifest(const fs::path& run) {
  constexpr uint64_t most_bytes = 16 << 20;
  const fs::path file = run / "manifest.json";
  return manifest_from_json(read_text_file(file, most_bytes), file.string());
}

Error no_model_in(const fs::path& folder, const std::vector<fs::path>& unfinished) {
  const auto diverged = [](const fs::path& run) {
    return read_manifest(run).status == RunStatus::diverged;
  };
  std::string what = fmt::format("no model.safetensors in '{}'", folder.string()), hint;
  if (!unfinished.empty() && std::all_of(unfinished.begin(), unfinished.end(), diverged)) {
    what += ": the training diverged: " + read_manifest(unfinished.front()).message;
    hint = "train it with a lower --lr or with --clip";
  } else if (!unfinished.empty()) {
    hint = "its run has not finished; posattn train --resume goes on";
  }
  return Error(ExitCode::data, what, expected_models, hint);
}

FoundModels models_below(const fs::path& folder) {
  FoundModels found;
  try {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
      const fs::path& path = entry.path();
      if (!entry.is_regular_file()) continue;
      if (path.filename() == "model.safetensors") found.models.push_back(path);
      const fs::path run = path.parent_path();
      if (path.filename() == "manifest.json" && !fs::exists(run / "model.safetensors")) {
        found.unfinished.push_back(run);
      }
    }
  } catch (const fs::filesystem_error& error) {
    throw Error(ExitCode::data,
                fmt::format("cannot read '{}': {}", folder.string(), error.code().message()));
  }
  std::sort(found.models.begin(), found.models.end());
  std::sort(found.unfinished.begin(), found.unfinished.end());
  if (found.models.empty()) throw no_model_in(folder, found.unfinished);
  return found;
}

}  // namespace

FoundModels find_models(const std::string& name) {
  std::error_code ignored;
  const fs::path path = name;
  if (fs::is_directory(path, ignored)) return models_below(path);
  if (!fs::exists(path, ignored)) {
    throw Error(ExitCode::data, fmt::format("no such file or folder: '{}'", name), expected_models);
  }
  return {.models = {path}, .unfinished = {}};
}

fs::path find_model(const std::string& name, bool (*suits)(const fs::path& model)) {
  const std::vector<fs::path> found = find_models(name).models;
  if (found.size() > 1) {
    auto example = suits == nullptr ? found.begin() : std::ranges::find_if(found, suits);
    if (example == found.end()) example = found.begin();
    throw Error(ExitCode::data, fmt::format("'{}' holds {} models", name, found.size()),
                "one model", fmt::format("name one of them, such as {}", example->string()));
  }
  return found[0];
}

bool NamedPaths::add(const fs::path& path) {
  return seen_.insert(fs::weakly_canonical(path)).second;
}

std::vector<fs::path> find_named_models(const std::vector<std::string>& names) {
  NamedPaths named;
  std::vector<fs::path> models;
  for (const std::string& name : names) {
    for (const fs::path& model : find_models(name).models) {
      if (named.add(model)) models.push_back(model);
    }
  }
  return models;
}

Model read_model(const fs::path& path, const ModelHints& hints) {
  Model model = load_model(path, hints);
  if (model.origin.variable_length) task_of(model.origin, path.string());
  return model;
}

std::optional<RunConfig> settings_of_run(const std::filesystem::path& model) {
  const std::filesystem::path file = model.parent_path() / "config.toml";
  std::error_code ignored;
  if (model.filename() != "model.safetensors" || !std::filesystem::is_regular_file(file, ignored)) {
    return {};
  }
  return read_config_file(file).config;
}

void check_settings(const fs::path& path, const RunConfig& settings, const Model& model) {
  if (model_spec(settings) == model.spec) return;
  throw Error(ExitCode::data,
              fmt::format("'{}' holds another model than its config.toml says",
                          path.parent_path().string()),
              "the folder as training left it");
}

void add_hint_flags(CLI::App& command, ModelHints& hints) {
  option(command, "--architecture", hints.architecture, "NAME",
         "The architecture, where the shapes of the tensors leave it open")
      ->group(hint_group);
  option(command, "--task", hints.task, "NAME", "The task it was trained on")->group(hint_group);
  option(command, "--task-set", hints.task_set, "TEXT", "The task's parameters, as regions=4")
      ->group(hint_group);
  option(command, "--length", hints.length, "INT", "The length it was trained on")
      ->group(hint_group);
  option(command, "--heads", hints.heads, "INT", "Its attention heads")->group(hint_group);
  option(command, "--vocabulary", hints.vocabulary, "FOLDER",
         "The folder of vocab.json and merges.txt, for a model of GPT-2's tokens from 0.2.0")
      ->group(hint_group);
}

}  // namespace posattn
