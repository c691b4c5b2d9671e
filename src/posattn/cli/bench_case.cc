#include "posattn/cli/bench_case.h"

#include <fmt/format.h>

#include "posattn/base/error.h"
#include "posattn/tasks/task.h"

namespace posattn {

std::vector<std::string> architectures(const BenchCases& cases) {
  if (!cases.architectures.empty()) return cases.architectures;
  if (cases.task == "k-hop") return {"standard:3", "positional:6", "standard:8"};
  return {"positional", "standard"};
}

std::vector<RunConfig> bench_configs(const BenchCases& cases) {
  RunConfig base;
  base.task = cases.task;
  for (const auto& [key, value] : find_task(cases.task).settings()) set_field(base, key, value);
  if (cases.length > 0) base.length = cases.length;
  if (cases.batch > 0) base.batch = cases.batch;
  base.path = cases.path;
  std::vector<RunConfig> configs;
  for (const std::string& name : architectures(cases)) {
    RunConfig config = base;
    const size_t colon = name.find(':');
    config.architecture = name.substr(0, colon);
    if (colon != std::string::npos) {
      set_field(config, "depth", name.substr(colon + 1), fmt::format("in --architecture {}", name),
                ExitCode::usage);
    }
    config.samples = std::max(config.samples, config.batch);
    validate(config);
    configs.push_back(std::move(config));
  }
  return configs;
}

}  // namespace posattn
