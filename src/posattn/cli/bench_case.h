// What `posattn bench` times: models of a task, by name.
#pragma once

#include <string>
#include <vector>

#include "posattn/training/run_config.h"

namespace posattn {

struct BenchCases {
  std::string task = "cumulative-sum";
  std::vector<std::string> architectures;  // "standard", "standard:8"; empty: see architectures
  int length = 0;                          // 0: the task's own
  int64_t batch = 0;                       // 0: the task's own
  std::string path = "auto";
};

// Those named, or both of the paper; for k-hop at the depths that docs/performance.md compares.
std::vector<std::string> architectures(const BenchCases& cases);

// The runs whose steps are timed: what the task suggests, and these sizes. An architecture may have
// a depth behind a colon. In the order of architectures. Throws Error(usage or configuration).
std::vector<RunConfig> bench_configs(const BenchCases& cases);

}  // namespace posattn
