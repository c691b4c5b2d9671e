#include "posattn/model/spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>

#include "posattn/base/error.h"

namespace posattn {
namespace {

// Limits that keep every product below within int64_t and refuse what no machine could hold.
constexpr int node_limit = 1 << 20;
constexpr int width_limit = 1 << 16;
constexpr int depth_limit = 1 << 12;
constexpr int mlp_depth_limit = 64;
constexpr int64_t element_limit = int64_t{1} << 33;

struct PresetRow {
  const char* name;
  const char* description;
  AttentionSource attention;
  bool positions_in_input, rope, direct_attention;
};

// The plain names stand before their m-numbers, so that preset_name finds them first.
constexpr PresetRow preset_rows[] = {
    {"positional", "attention from positions only, values alone in the input (M5)",
     AttentionSource::positions, false, false, false},
    {"standard", "attention from the data, [values | positions] in the input (M0)",
     AttentionSource::data, true, false, false},
    {"positional-direct", "a learned score matrix per head, values alone in the input",
     AttentionSource::positions, false, false, true},
    {"standard-rope", "the standard model with queries and keys rotated by node index",
     AttentionSource::data, true, true, false},
    {"m0", "the same as standard", AttentionSource::data, true, false, false},
    {"m1", "attention from positions, [values | positions] in the input",
     AttentionSource::positions, true, false, false},
    {"m2", "attention from the data, values alone in the input: no positions at all",
     AttentionSource::data, false, false, false},
    {"m3", "attention from [data | positions] in every layer, values alone in the input",
     AttentionSource::data_and_positions, false, false, false},
    {"m4", "attention from the data with RoPE, values alone in the input", AttentionSource::data,
     false, true, false},
    {"m5", "the same as positional", AttentionSource::positions, false, false, false},
};

constexpr AttentionSource attention_sources[] = {AttentionSource::positions, AttentionSource::data,
                                                 AttentionSource::data_and_positions};
constexpr Encoding encodings[] = {Encoding::one_hot, Encoding::binary, Encoding::sinusoidal,
                                  Encoding::random, Encoding::learned};

template <class Enumeration, size_t count>
Enumeration from_name(const Enumeration (&all)[count], const char* kind, std::string_view name) {
  std::vector<std::string> known;
  for (const Enumeration value : all) {
    if (to_string(value) == name) return value;
    known.emplace_back(to_string(value));
  }
  throw unknown_name(ExitCode::usage, kind, name, known);
}

Error impossible(std::string what, std::string expected, std::string hint = {}) {
  return Error(ExitCode::configuration, std::move(what), std::move(expected), std::move(hint));
}

void check_size(const char* name, int value, int low, int high) {
  if (value < low || value > high) {
    throw impossible(fmt::format("{} = {}", name, value), fmt::format("{} to {}", low, high));
  }
}

int bits_for(int nodes) {
  return std::max(1, static_cast<int>(std::bit_width(static_cast<unsigned>(nodes - 1))));
}

int default_encoding_size(const ModelSpec& spec) {
  switch (spec.encoding) {
    case Encoding::binary:
      return bits_for(spec.nodes());
    case Encoding::sinusoidal:
      return 2;
    default:
      return spec.nodes();
  }
}

void check_encoding_size(const ModelSpec& spec) {
  const int size = spec.encoding_size;
  switch (spec.encoding) {
    case Encoding::one_hot:
      if (size != spec.nodes()) {
        throw impossible(fmt::format("encoding_size = {} for a one-hot encoding", size),
                         fmt::format("the number of nodes, {}", spec.nodes()));
      }
      return;
    case Encoding::binary:
      check_size("encoding_size (binary)", size, bits_for(spec.nodes()), 31);
      return;
    case Encoding::sinusoidal:
      check_size("encoding_size (sinusoidal)", size, 2, node_limit);
      if (size % 2 != 0) {
        throw impossible(fmt::format("encoding_size = {} for a sinusoidal encoding", size),
                         "an even number: pairs of sine and cosine");
      }
      return;
    default:
      check_size("encoding_size", size, 1, node_limit);
  }
}

// Elements of all tensors and of P. Every factor has been checked against its limit, so one layer
// stays below 2^60 and only the product with the depth needs care.
void check_total(const ModelSpec& spec) {
  const int64_t nodes = spec.nodes(), width = spec.width, heads = spec.heads;
  const int64_t key = spec.key_size(), hidden = spec.mlp_width;
  const int64_t attention = spec.routed             ? 2 * heads * nodes * spec.route_places
                            : spec.direct_attention ? heads * nodes * nodes
                                                    : 2 * heads * key * (key + 1);
  const int64_t layer = attention + 2 * width * (width + 1) + hidden * (2 * width + 1) +
                        (spec.mlp_depth - 2) * hidden * (hidden + 1) + width * (hidden + 1);
  const int64_t rest = width * (spec.input_size() + 1) + spec.output_columns * (width + 1) +
                       (spec.uses_positions() && !spec.routed ? nodes * spec.encoding_size : 0);
  if (layer > element_limit / spec.depth || layer * spec.depth + rest > element_limit) {
    throw impossible("the model is too large", fmt::format("at most {} parameters", element_limit),
                     "reduce nodes, width, heads or depth, or use a smaller position encoding");
  }
}

void check_routes(const ModelSpec& spec) {
  if (!spec.routed) {
    check_size("route_places (without routes)", spec.route_places, 1, 1);
    return;
  }
  check_size("route_places", spec.route_places, 1, node_limit);
  const auto expect = [](bool holds, std::string_view found, const char* expected) {
    if (!holds) throw impossible(fmt::format("routes with {}", found), expected);
  };
  expect(spec.attention == AttentionSource::positions,
         fmt::format("attention from {}", to_string(spec.attention)),
         "attention = positions: fixed places do not depend on the data");
  expect(!spec.direct_attention, "direct attention", "one of the two");
  expect(!spec.rope, "RoPE", "no RoPE: there are no queries and keys to rotate");
  expect(spec.encoding == Encoding::one_hot, fmt::format("{} positions", to_string(spec.encoding)),
         "one-hot positions");
  expect(spec.scratch_nodes == 1, fmt::format("{} scratch nodes", spec.scratch_nodes),
         "one: it is read where there is nothing to read");
}

}  // namespace

int default_depth(int length) {
  if (length < 1) throw impossible(fmt::format("length {}", length), "at least 1");
  return static_cast<int>(std::bit_width(static_cast<unsigned>(length)));
}

ModelSpec resolve(ModelSpec spec) {
  check_size("real_nodes", spec.real_nodes, 1, node_limit);
  check_size("scratch_nodes", spec.scratch_nodes, 0, node_limit);
  check_size("nodes (real and scratch)", spec.nodes(), 1, node_limit + (spec.routed ? 1 : 0));
  check_size("data_columns", spec.data_columns, 1, node_limit);
  check_size("output_columns", spec.output_columns, 1, node_limit);
  check_size("width", spec.width, 1, width_limit);
  check_size("heads", spec.heads, 1, width_limit);
  check_size("depth", spec.depth, 1, depth_limit);
  check_size("mlp_width", spec.mlp_width, 1, width_limit);
  check_size("mlp_depth", spec.mlp_depth, 2, mlp_depth_limit);
  if (spec.width % spec.heads != 0) {
    throw impossible(fmt::format("{} heads do not divide the width {}", spec.heads, spec.width),
                     "heads that divide the width",
                     "every head carries width / heads columns of the values");
  }
  if (spec.direct_attention && spec.attention != AttentionSource::positions) {
    throw impossible(
        fmt::format("direct attention with attention from {}", to_string(spec.attention)),
        "attention = positions: a learned score matrix does not depend on the data");
  }
  if (spec.direct_attention && spec.rope) {
    throw impossible("direct attention with RoPE",
                     "one of the two: direct attention has no queries and keys to rotate");
  }
  check_routes(spec);
  if (spec.encoding_size == 0) spec.encoding_size = default_encoding_size(spec);
  check_encoding_size(spec);
  check_total(spec);
  return spec;
}

const std::vector<Preset>& presets() {
  static const std::vector<Preset> all = [] {
    std::vector<Preset> list;
    for (const PresetRow& row : preset_rows) list.push_back({row.name, row.description});
    return list;
  }();
  return all;
}

void apply_preset(std::string_view name, ModelSpec& spec) {
  std::vector<std::string> known;
  for (const PresetRow& row : preset_rows) {
    if (row.name == name) {
      spec.attention = row.attention;
      spec.positions_in_input = row.positions_in_input;
      spec.rope = row.rope;
      spec.direct_attention = row.direct_attention;
      return;
    }
    known.emplace_back(row.name);
  }
  throw unknown_name(ExitCode::usage, "architecture", name, known);
}

std::string preset_name(const ModelSpec& spec) {
  for (const PresetRow& row : preset_rows) {
    if (row.attention == spec.attention && row.positions_in_input == spec.positions_in_input &&
        row.rope == spec.rope && row.direct_attention == spec.direct_attention) {
      return row.name;
    }
  }
  return "custom";
}

std::string_view to_string(AttentionSource source) {
  switch (source) {
    case AttentionSource::positions:
      return "positions";
    case AttentionSource::data:
      return "data";
    case AttentionSource::data_and_positions:
      return "data_and_positions";
  }
  return "?";
}

std::string_view to_string(Encoding encoding) {
  switch (encoding) {
    case Encoding::one_hot:
      return "one_hot";
    case Encoding::binary:
      return "binary";
    case Encoding::sinusoidal:
      return "sinusoidal";
    case Encoding::random:
      return "random";
    case Encoding::learned:
      return "learned";
  }
  return "?";
}

AttentionSource attention_source_from(std::string_view name) {
  return from_name(attention_sources, "attention source", name);
}

Encoding encoding_from(std::string_view name) { return from_name(encodings, "encoding", name); }

std::vector<double> formula_positions(const ModelSpec& spec) {
  const int nodes = spec.nodes(), size = spec.encoding_size;
  std::vector<double> positions(static_cast<size_t>(nodes) * size);
  for (int node = 0; node < nodes; ++node) {
    double* row = positions.data() + static_cast<size_t>(node) * size;
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
  }
  return positions;
}

}  // namespace posattn
