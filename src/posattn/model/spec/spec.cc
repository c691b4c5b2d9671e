#include "posattn/model/spec/spec.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "posattn/base/text.h"
#include "posattn/model/spec/spec_checks.h"

namespace posattn {
namespace {

int default_encoding_size(const ModelSpec& spec) {
  if (spec.positions_added) return spec.width;
  switch (spec.encoding) {
    case Encoding::binary:
      return bits_for(spec.nodes());
    case Encoding::sinusoidal:
      return 2;
    default:
      return spec.nodes();
  }
}

// What no layer reads is left out: the task decides it, and may have more.
void resolve_pairs(ModelSpec& spec) {
  constexpr int most = 1 << 16;
  check_size("pair_columns", spec.pair_columns, 0, most);
  check_size("pair_classes", spec.pair_classes, 0, most);
  const bool scored =
      spec.any_layer([](const AttentionChoices& kind) { return kind.scores_pairs(); });
  const bool masked =
      spec.any_layer([](const AttentionChoices& kind) { return kind.pair_mask != PairMask::none; });
  if (scored && !spec.has_pairs()) {
    throw impossible("attention by pairs of nodes, of which the samples have none",
                     "a task whose samples have pairs, as neighbour-min");
  }
  if (masked && spec.pair_classes < 2) {
    throw impossible("attention among neighbours, of pairs without classes",
                     "a task whose pairs have classes, as neighbour-min");
  }
  if (!scored) spec.pair_columns = 0;
  if (!scored && !masked) spec.pair_classes = 0;
}

// "a,b,a,b" of four layers is "a,b"; where all layers are alike there is nothing to list.
void resolve_kinds(ModelSpec& spec) {
  if (spec.kinds.empty()) return;
  std::vector<std::string> names;
  std::vector<AttentionChoices> layers;
  for (const std::string_view name : split_at_commas(spec.kinds)) names.emplace_back(name);
  for (size_t layer = 0; layer < static_cast<size_t>(spec.depth); ++layer) {
    try {
      layers.push_back(kind_of(names[layer % names.size()]));
    } catch (const Error& error) {
      throw impossible("kinds: " + error.problem(), error.expected(), error.hint());
    }
  }
  if (names.size() > layers.size()) {
    throw impossible(fmt::format("{} kinds of attention for {} layers", names.size(), spec.depth),
                     "at most one for each layer");
  }
  const int reach = spec.reach;
  size_t period = 1;
  const auto repeats = [&] {
    for (size_t layer = period; layer < layers.size(); ++layer) {
      if (layers[layer] != layers[layer - period]) return false;
    }
    return true;
  };
  while (!repeats()) ++period;
  spec.kinds.clear();
  static_cast<AttentionChoices&>(spec) = period == 1 ? layers.front() : AttentionChoices();
  if (spec.reach == 0) spec.reach = reach;
  if (period == 1) return;
  for (size_t layer = 0; layer < period; ++layer) {
    if (layers[layer].scores == Scores::routes) {
      throw impossible("layers of different kinds with routes", "routes in every layer");
    }
    spec.kinds += (layer == 0 ? "" : ",") + names[layer % names.size()];
  }
}

}  // namespace

ScoreBias AttentionChoices::position_scores() const {
  if (reads_data()) return score_bias;
  switch (scores) {
    case Scores::direct:
      return ScoreBias::direct;
    case Scores::distance:
      return ScoreBias::distance;
    case Scores::pairs:
      return ScoreBias::pairs;
    case Scores::routes:
      return ScoreBias::none;
    default:
      return ScoreBias::positions;
  }
}

int ModelSpec::loops_at(int of_real_nodes) const {
  if (loops == "n") return of_real_nodes;
  if (loops == "log2") return bits_for(of_real_nodes);
  return static_cast<int>(parse_integer(loops, "loops"));
}

ModelSpec ModelSpec::of_layer(int layer) const {
  ModelSpec spec = *this;
  if (kinds.empty()) return spec;
  const std::vector<std::string_view> names = split_at_commas(kinds);
  static_cast<AttentionChoices&>(spec) = kind_of(names[layer % names.size()]);
  if (spec.reach == 0) spec.reach = reach;
  spec.kinds.clear();
  return spec;
}

int default_depth(int length) {
  if (length < 1) throw impossible(fmt::format("length {}", length), "at least 1");
  return static_cast<int>(std::bit_width(static_cast<unsigned>(length)));
}

ModelSpec resolve(ModelSpec spec) {
  check_sizes(spec);
  resolve_kinds(spec);
  resolve_pairs(spec);
  check_loops(spec);
  check_hints(spec);
  if (spec.reach == 0 &&
      spec.any_layer([](const AttentionChoices& kind) { return kind.reads_distances(); })) {
    spec.reach = spec.real_nodes;
  }
  if (spec.encoding == Encoding::automatic) {
    spec.encoding = spec.positions_added ? Encoding::learned : Encoding::one_hot;
  }
  if (spec.encoding_size == 0) spec.encoding_size = default_encoding_size(spec);
  check_resolved(spec);
  return spec;
}

std::optional<ModelSpec> at_length(const ModelSpec& spec, int real_nodes) {
  if (real_nodes == spec.real_nodes) return spec;
  const bool by_pairs = spec.any_layer([](const AttentionChoices& kind) {
    return kind.position_scores() == ScoreBias::direct || kind.scores == Scores::routes;
  });
  const bool tied_to_nodes = spec.stores_positions() || by_pairs ||
                             (spec.uses_positions() && spec.encoding == Encoding::one_hot);
  if (tied_to_nodes) return std::nullopt;
  ModelSpec other = spec;
  other.real_nodes = real_nodes;
  if (!spec.uses_positions()) other.encoding_size = 0;  // of no meaning: its default again
  try {
    return resolve(other);
  } catch (const Error&) {  // more nodes than binary positions can tell apart
    return std::nullopt;
  }
}

std::vector<double> formula_positions(const ModelSpec& spec) {
  std::vector<int> nodes(static_cast<size_t>(spec.nodes()));
  std::iota(nodes.begin(), nodes.end(), 0);
  return formula_positions(spec, nodes);
}

std::vector<double> formula_positions(const ModelSpec& spec, std::span<const int> nodes) {
  const int size = spec.encoding_size;
  std::vector<double> positions(nodes.size() * size);
  double* row = positions.data();
  for (const int node : nodes) {
    for (int column = 0; column < size; ++column) {
      switch (spec.encoding) {
        case Encoding::one_hot:
          row[column] = node == column ? 1 : 0;
          break;
        case Encoding::binary:
          row[column] = (node >> column) & 1 ? 1 : -1;
          break;
        case Encoding::sinusoidal: {
          const int even = column - column % 2;
          const double angle = node / std::pow(10000.0, static_cast<double>(even) / size);
          row[column] = column == even ? std::sin(angle) : std::cos(angle);
          break;
        }
        default:
          throw std::logic_error("this encoding has no formula: its values are stored");
      }
    }
    row += size;
  }
  return positions;
}

}  // namespace posattn
