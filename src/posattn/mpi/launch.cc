#include "posattn/mpi/launch.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>

namespace posattn {
namespace {

std::optional<int> number_of(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  const std::string_view digits(text);
  int value = 0;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (problem != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

}  // namespace

Launch launch_from_environment() {
  constexpr const char* launchers[][2] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                          {"PMI_RANK", "PMI_SIZE"},
                                          {"PMIX_RANK", "SLURM_STEP_NUM_TASKS"}};
  for (const auto& [rank_variable, size_variable] : launchers) {
    const std::optional<int> rank = number_of(rank_variable), size = number_of(size_variable);
    if (rank && size) return {.rank = *rank, .size = *size};
  }
  return {};
}

std::vector<std::string> environment_without_launcher() {
  constexpr std::string_view prefixes[] = {"OMPI_", "PMIX_", "PMI_", "ORTE_", "PRTE_", "HYDRA_"};
  std::vector<std::string> kept;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const bool of_launcher = std::ranges::any_of(
        prefixes, [&](std::string_view prefix) { return text.starts_with(prefix); });
    if (!of_launcher) kept.emplace_back(text);
  }
  return kept;
}

}  // namespace posattn
