#include "posattn/model/spec/node_positions.h"

#include "posattn/base/random.h"

namespace posattn {
namespace {

// Each place in turn is taken with the probability that makes all sets of n equally likely: those
// still wanted over those still left.
std::vector<int> sorted_draw(int n, int range, const StepContext& context) {
  RandomStream random(context.seed, Purpose::node_positions, context.step, 0);
  std::vector<int> places;
  for (int place = 0; static_cast<int>(places.size()) < n; ++place) {
    const auto left = static_cast<uint32_t>(range - place);
    if (random.below(left) < n - places.size()) places.push_back(place);
  }
  return places;
}

}  // namespace

std::vector<int> node_positions(const ModelSpec& spec, int real_nodes, const StepContext& context) {
  const int range = spec.position_range, n = real_nodes;
  std::vector<int> places;
  if (range > 0 && context.training) places = sorted_draw(n, range, context);
  for (int i = static_cast<int>(places.size()); i < n; ++i) {
    const int64_t spread = int64_t{i + 1} * (range + 1) / (n + 1) - 1;
    places.push_back(range > 0 ? static_cast<int>(spread) : i);
  }
  for (int i = 0; i < spec.scratch_nodes; ++i) {
    places.push_back((range > 0 ? range : spec.real_nodes) + i);
  }
  return places;
}

}  // namespace posattn
