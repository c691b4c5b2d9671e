// The maps apart from their drawing: names of nodes, and a part of them.
#include <fmt/format.h>

#include <stdexcept>

#include "posattn/report/svg/attention_svg.h"

namespace posattn {

std::string AttentionMaps::number(int node) const {
  const int real_nodes = nodes - scratch_nodes;
  if (node < real_nodes) return std::to_string(first_node + node);
  return scratch_nodes == 1 ? "s" : fmt::format("s{}", node - real_nodes);
}

std::string AttentionMaps::name(int node) const {
  const auto at = static_cast<size_t>(node);
  return at < names.size() ? names[at] : number(node);
}

std::string AttentionMaps::full_name(int node) const {
  const auto at = static_cast<size_t>(node);
  return at < names.size() ? fmt::format("{} {}", number(node), names[at]) : number(node);
}

AttentionMaps part_of(const AttentionMaps& maps, int first, int last) {
  if (first < 0 || last < first || last >= maps.nodes - maps.scratch_nodes) {
    throw std::invalid_argument("part_of: no such nodes");
  }
  AttentionMaps part{.caption = maps.caption,
                     .depth = maps.depth,
                     .heads = maps.heads,
                     .nodes = last - first + 1,
                     .scratch_nodes = 0,
                     .weights = {},
                     .names = {},
                     .first_node = maps.first_node + first};
  for (int map = 0; map < maps.depth * maps.heads; ++map) {
    for (int row = first; row <= last; ++row) {
      const auto begin = maps.weights.begin() + (int64_t{1} * map * maps.nodes + row) * maps.nodes;
      part.weights.insert(part.weights.end(), begin + first, begin + last + 1);
    }
  }
  if (!maps.names.empty()) {
    part.names.assign(maps.names.begin() + first, maps.names.begin() + last + 1);
  }
  return part;
}

}  // namespace posattn
