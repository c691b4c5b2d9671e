#include "posattn/cli/model_paths.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "posattn/base/error.h"

namespace posattn {
namespace {

namespace fs = std::filesystem;

constexpr const char* expected_models = "a model file, a run folder or a folder of runs";

std::vector<fs::path> models_below(const fs::path& folder) {
  std::vector<fs::path> found;
  bool unfinished = false;
  try {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
      const std::string name = entry.path().filename().string();
      if (name == "model.safetensors" && entry.is_regular_file()) found.push_back(entry.path());
      unfinished = unfinished || name == "checkpoint.safetensors";
    }
  } catch (const fs::filesystem_error& error) {
    throw Error(ExitCode::data,
                fmt::format("cannot read '{}': {}", folder.string(), error.code().message()));
  }
  if (found.empty()) {
    throw Error(ExitCode::data, fmt::format("no model.safetensors in '{}'", folder.string()),
                expected_models,
                unfinished ? "its run has not finished; posattn train --resume goes on" : "");
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

std::vector<fs::path> find_models(const std::string& name) {
  std::error_code ignored;
  const fs::path path = name;
  if (fs::is_directory(path, ignored)) return models_below(path);
  if (!fs::exists(path, ignored)) {
    throw Error(ExitCode::data, fmt::format("no such file or folder: '{}'", name), expected_models);
  }
  return {path};
}

fs::path find_model(const std::string& name) {
  std::vector<fs::path> found = find_models(name);
  if (found.size() > 1) {
    throw Error(ExitCode::data, fmt::format("'{}' holds {} models", name, found.size()),
                "one model", fmt::format("name one of them, such as {}", found[0].string()));
  }
  return found[0];
}

void add_hint_flags(CLI::App& command, ModelHints& hints) {
  constexpr const char* group = "For files from elsewhere";
  command.add_option("--architecture", hints.architecture, "What the file's shapes leave open")
      ->option_text("NAME")
      ->group(group);
  command.add_option("--task", hints.task, "The task it was trained on")
      ->option_text("NAME")
      ->group(group);
  command.add_option("--length", hints.length, "The length it was trained on")
      ->option_text("INT")
      ->group(group);
  command.add_option("--heads", hints.heads, "Its attention heads")
      ->option_text("INT")
      ->group(group);
}

}  // namespace posattn
