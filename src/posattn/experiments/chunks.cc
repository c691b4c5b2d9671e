#include "posattn/experiments/chunks.h"

#include <algorithm>
#include <string>

namespace posattn {
namespace {

// What runs that share a fleet have in common (training/device_fleet.h).
struct Shape {
  ModelSpec spec;
  int64_t batch;
  std::string precision, path;
  bool operator==(const Shape&) const = default;
};

using Places = std::vector<std::size_t>;

}  // namespace

std::vector<Places> by_shape(const std::vector<RunConfig>& configs) {
  std::vector<Shape> shapes;
  std::vector<Places> groups;
  for (std::size_t run = 0; run < configs.size(); ++run) {
    const RunConfig& config = configs[run];
    const Shape shape{model_spec(config), config.batch, config.precision, config.path};
    const auto group = static_cast<std::size_t>(std::ranges::find(shapes, shape) - shapes.begin());
    if (group == shapes.size()) {
      shapes.push_back(shape);
      groups.emplace_back();
    }
    groups[group].push_back(run);
  }
  return groups;
}

std::vector<Places> plan_chunks(const std::vector<RunConfig>& configs, std::size_t most) {
  std::vector<Places> chunks;
  const auto length = [&](std::size_t run) { return configs[run].epochs * configs[run].samples; };
  for (Places& group : by_shape(configs)) {
    std::ranges::stable_sort(group, std::ranges::greater(), length);
    const std::size_t parts = (group.size() + most - 1) / most;
    for (std::size_t part = 0; part < parts; ++part) {
      const auto at = [&](std::size_t i) {
        return group.begin() + static_cast<std::ptrdiff_t>(group.size() * i / parts);
      };
      const auto size = static_cast<std::size_t>(at(part + 1) - at(part));
      if (chunks.empty() || chunks.back().size() + size > most) chunks.emplace_back();
      chunks.back().insert(chunks.back().end(), at(part), at(part + 1));
    }
  }
  return chunks;
}

}  // namespace posattn
