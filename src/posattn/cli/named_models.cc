#include "posattn/cli/named_models.h"

#include "posattn/cli/model_paths.h"

namespace posattn {

bool NamedPaths::add(const std::filesystem::path& path) {
  return seen_.insert(std::filesystem::weakly_canonical(path)).second;
}

std::vector<std::filesystem::path> find_named_models(const std::vector<std::string>& names) {
  NamedPaths named;
  std::vector<std::filesystem::path> models;
  for (const std::string& name : names) {
    for (const std::filesystem::path& model : find_models(name).models) {
      if (named.add(model)) models.push_back(model);
    }
  }
  return models;
}

}  // namespace posattn
