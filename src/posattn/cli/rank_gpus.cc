#include "posattn/cli/rank_gpus.h"

#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <sstream>
#include <vector>

namespace posattn {
namespace {

std::vector<std::string> gpus_of_machine() {
  std::vector<std::string> names;
  if (const char* visible = std::getenv(visible_gpus)) {
    std::istringstream list(visible);
    for (std::string name; std::getline(list, name, ',');) names.push_back(name);
    return names;
  }
  std::error_code none;
  const std::filesystem::directory_iterator gpus("/proc/driver/nvidia/gpus", none);
  const auto count = std::distance(begin(gpus), end(gpus));
  for (int i = 0; i < count; ++i) names.push_back(std::to_string(i));
  return names;
}

}  // namespace

std::optional<std::string> own_gpu(int node_rank) {
  const std::vector<std::string> gpus = gpus_of_machine();
  if (gpus.size() < 2) return std::nullopt;
  return gpus[static_cast<std::size_t>(node_rank) % gpus.size()];
}

}  // namespace posattn
