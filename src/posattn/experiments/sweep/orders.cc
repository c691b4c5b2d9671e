#include "posattn/experiments/sweep/orders.h"

#include <algorithm>
#include <numeric>

#include "posattn/experiments/chunks.h"
#include "posattn/experiments/shards.h"

namespace posattn {

std::vector<std::vector<std::size_t>> plan_orders(const std::vector<RunConfig>& configs, int ranks,
                                                  std::size_t most) {
  const auto of = static_cast<std::size_t>(ranks);
  const std::size_t together = std::clamp<std::size_t>((configs.size() + of - 1) / of, 1, most);
  std::vector<double> costs;
  costs.reserve(configs.size());
  for (const RunConfig& config : configs) costs.push_back(estimated_cost(config));
  const auto costlier = [&](std::size_t a, std::size_t b) { return costs[a] > costs[b]; };
  const auto cost_of = [&](const std::vector<std::size_t>& order) {
    return std::accumulate(order.begin(), order.end(), 0.0,
                           [&](double sum, std::size_t run) { return sum + costs[run]; });
  };
  std::vector<std::vector<std::size_t>> orders;
  for (std::vector<std::size_t> group : by_shape(configs)) {
    std::ranges::stable_sort(group, costlier);  // runs of one order end together
    for (std::size_t begin = 0; begin < group.size(); begin += together) {
      const std::size_t end = std::min(begin + together, group.size());
      orders.emplace_back(group.begin() + static_cast<std::ptrdiff_t>(begin),
                          group.begin() + static_cast<std::ptrdiff_t>(end));
    }
  }
  std::ranges::stable_sort(orders,
                           [&](const auto& a, const auto& b) { return cost_of(a) > cost_of(b); });
  return orders;
}

}  // namespace posattn
