// Evaluates a network plan as it is written, in double: for tests.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "posattn/programs/lowering/network_plan.h"

namespace posattn {

inline std::vector<double> run_plan(const NetworkPlan& plan, std::span<const double> input) {
  const int n = plan.program.processors, width = plan.width;
  using Rows = std::vector<std::vector<double>>;  // [nodes, columns], the scratch node last
  Rows x(n + 1, std::vector<double>(width));
  for (int i = 0; i < n; ++i) {
    for (size_t w = 0; w < plan.start.size(); ++w) {
      if (plan.start[w] < 0) continue;
      const std::vector<double>& initial = plan.program.words[w].initial;
      x[i][plan.start[w]] = initial.empty() ? 0 : initial[i];
    }
    const int column = plan.start[plan.program.inputs[0]];
    if (column >= 0) x[i][column] = input[i];
  }
  const auto dot = [](const LinearForm& form, const std::vector<double>& values) {
    double sum = 0;
    for (const auto& [index, factor] : form) sum += factor * values[index];
    return sum;
  };
  for (const PlannedLayer& layer : plan.layers) {
    Rows next(n + 1);
    for (int i = 0; i <= n; ++i) {
      std::vector<double> seen = x[i];
      seen.resize(2 * width);
      for (size_t h = 0; i < n && h < layer.heads.size(); ++h) {
        const PlannedHead& head = layer.heads[h];
        for (size_t p = 0; p < head.columns.size(); ++p) {
          double& place = seen[width + h * plan.head_size() + p];
          if (!head.route.is_weighted()) {
            place = x[head.route.sources[i]][head.columns[p]];
            continue;
          }
          for (const auto& [j, weight] : head.route.weighted[i]) {
            place += weight * x[j][head.columns[p]];
          }
        }
      }
      std::vector<double> units;
      for (const LinearForm& unit : layer.units) units.push_back(std::max(0.0, dot(unit, seen)));
      for (const LinearForm& column : layer.columns) next[i].push_back(dot(column, units));
    }
    x = std::move(next);
  }
  std::vector<double> output(n);
  for (int i = 0; i < n; ++i) output[i] = x[i][plan.outputs[0]];
  return output;
}

}  // namespace posattn
