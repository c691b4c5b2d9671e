// What several names mean, each thing once: a model or run that is named twice, also by another
// path, counts once.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace posattn {

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

}  // namespace posattn
