#include "posattn/model/routed/routed_network.h"

#include <fmt/format.h>

#include <algorithm>

#include "posattn/base/error.h"
#include "posattn/model/spec/tensor_names.h"

namespace posattn {
namespace {

// A weight [out, in] of a model by its columns that are not zero.
class SparseRows {
 public:
  SparseRows(std::span<const float> weight, int64_t in) : rows_(weight.size() / in) {
    for (size_t r = 0; r < rows_.size(); ++r) {
      for (int64_t c = 0; c < in; ++c) {
        if (weight[r * in + c] != 0) {
          rows_[r].emplace_back(static_cast<int>(c), double{weight[r * in + c]});
        }
      }
    }
  }
  const std::vector<std::pair<int, double>>& operator[](size_t row) const { return rows_[row]; }

 private:
  std::vector<std::vector<std::pair<int, double>>> rows_;
};

template <class T>
SparseMap<T> make_map(std::span<const float> weight, std::span<const float> bias, int64_t in,
                      int64_t columns) {
  SparseMap<T> map;
  for (size_t r = 0; r < bias.size(); ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      const float w = weight[r * in + c];
      if (w != 0) map.terms.push_back({0, static_cast<int32_t>(c), T{w}});
    }
    map.close_row(T{bias[r]});
  }
  return map;
}

// Row i holds its mass on these places; `weights` null: all on the only one. Calls
// take(node, weight) for each that is not zero, what is left being the last scratch node's.
template <class Take>
void visit_reads(const float* routes, const float* weights, int places, int scratch,
                 const Take& take) {
  double rest = 1;
  for (int k = 0; k < places; ++k) {
    const float route = routes[k];
    if (!(route >= 0 && route <= static_cast<float>(scratch))) {
      throw Error(ExitCode::configuration, fmt::format("a route to node {}", route),
                  fmt::format("0 to {}", scratch));
    }
    const double weight = weights ? double{weights[k]} : 1.0;
    if (weight != 0) take(static_cast<int32_t>(route), weight);
    rest -= weight;
  }
  if (rest > 0) take(scratch, rest);
}

// The places of one layer of a model, whichever way it stores them.
struct StoredRoutes {
  const float *routes, *weights;
  int places, scratch;
  int64_t nodes;

  StoredRoutes(const ModelSpec& spec, const Parameters<float>& parameters, int layer)
      : routes(parameters[names::of_layer(layer, names::routes)].data()),
        weights(spec.route_places > 1
                    ? parameters[names::of_layer(layer, names::route_weights)].data()
                    : nullptr),
        places(spec.route_places),
        scratch(spec.nodes() - 1),
        nodes(spec.nodes()) {}

  template <class Take>
  void visit(int head, int64_t node, const Take& take) const {
    const int64_t at = (head * nodes + node) * places;
    visit_reads(routes + at, weights ? weights + at : nullptr, places, scratch, take);
  }
};

}  // namespace

template <class T>
RoutedNetwork<T>::RoutedNetwork(const ModelSpec& spec, const Parameters<float>& parameters)
    : spec_(spec) {
  const int64_t inputs = spec.input_size(), width = spec.width;
  std::span<const float> encoding;
  if (inputs > 0) {
    encoding = parameters[names::weight(names::encoding)];
    encoder_ =
        make_map<T>(encoding, parameters[names::bias(names::encoding)], inputs, spec.data_columns);
  } else {
    for (int64_t c = 0; c < width; ++c) encoder_.close_row(T{0});
  }
  if (spec.vocabulary > 0) {
    const auto table = parameters[names::tokens];
    tokens_.assign(table.begin(), table.end());
  }
  if (spec.positions_added) {
    const auto added = parameters[names::positions];
    positions_.assign(added.begin(), added.end());
  } else if (spec.positions_in_input) {
    // One-hot P picks a column of the encoder's.
    positions_.resize(spec.nodes() * width);
    for (int64_t c = 0; c < width; ++c) {
      for (int64_t i = 0; i < spec.nodes(); ++i) {
        positions_[i * width + c] = encoding[c * inputs + spec.data_columns + i];
      }
    }
  }
  for (int l = 0; l < spec.depth; ++l) layers_.push_back(make_layer(parameters, l));
  decoder_ = make_map<T>(parameters[names::weight(names::decoding)],
                         parameters[names::bias(names::decoding)], width, width);
}

template <class T>
typename RoutedNetwork<T>::Layer RoutedNetwork<T>::make_layer(const Parameters<float>& parameters,
                                                              int index) const {
  const auto tensor = [&](std::string_view name) {
    return parameters[names::of_layer(index, name)];
  };
  const int width = spec_.width, head_size = spec_.head_size();
  const SparseRows first(tensor(names::weight(names::mlp_map(0))), int64_t{2} * width);
  const SparseRows out(tensor(names::weight(names::output)), width);
  const SparseRows value(tensor(names::weight(names::value)), width);
  const auto first_bias = tensor(names::bias(names::mlp_map(0)));
  const auto out_bias = tensor(names::bias(names::output)),
             value_bias = tensor(names::bias(names::value));

  Layer layer;
  std::vector<int> source_of(spec_.heads);  // 0: the head is not used so far
  SparseMap<T> units;
  for (int u = 0; u < spec_.mlp_width; ++u) {
    double bias = first_bias[u];
    std::vector<double> by_place(width);  // row u of W1o O
    for (const auto& [column, weight] : first[u]) {
      if (column < width) {
        units.terms.push_back({0, column, static_cast<T>(weight)});
        continue;
      }
      bias += weight * out_bias[column - width];
      for (const auto& [place, by_out] : out[column - width]) by_place[place] += weight * by_out;
    }
    for (int h = 0; h < spec_.heads; ++h) {
      std::vector<double> from_head(width);  // row u of W1o O_h V_h
      for (int place = h * head_size; place < (h + 1) * head_size; ++place) {
        bias += by_place[place] * value_bias[place];
        if (by_place[place] == 0) continue;
        for (const auto& [column, weight] : value[place])
          from_head[column] += by_place[place] * weight;
      }
      for (int column = 0; column < width; ++column) {
        if (from_head[column] == 0) continue;
        if (source_of[h] == 0) {
          layer.heads.push_back(make_head(parameters, index, h));
          source_of[h] = layer.heads.back().source = static_cast<int>(layer.heads.size());
        }
        std::vector<int32_t>& columns = layer.heads[source_of[h] - 1].columns;
        if (std::ranges::find(columns, column) == columns.end()) columns.push_back(column);
        units.terms.push_back({source_of[h], column, static_cast<T>(from_head[column])});
      }
    }
    units.close_row(static_cast<T>(bias));
  }
  layer.maps.push_back(std::move(units));
  for (int m = 1; m < spec_.mlp_depth; ++m) {
    const std::string name = names::mlp_map(m);
    layer.maps.push_back(make_map<T>(tensor(names::weight(name)), tensor(names::bias(name)),
                                     spec_.mlp_width, spec_.mlp_width));
  }
  return layer;
}

template <class T>
typename RoutedNetwork<T>::Head RoutedNetwork<T>::make_head(const Parameters<float>& parameters,
                                                            int layer, int head) const {
  const StoredRoutes stored(spec_, parameters, layer);
  Head result;
  result.node.resize(spec_.nodes());
  if (spec_.route_places > 1) result.begin.push_back(0);
  for (int i = 0; i < spec_.nodes(); ++i) {
    if (spec_.route_places == 1) {
      stored.visit(head, i, [&](int32_t node, double) { result.node[i] = node; });
      continue;
    }
    const size_t before = result.reads.size();
    stored.visit(head, i, [&](int32_t node, double weight) {
      result.reads.push_back({node, static_cast<T>(weight)});
    });
    result.node[i] = -1;
    if (result.reads.size() == before + 1 && result.reads.back().weight == 1) {
      result.node[i] = result.reads.back().node;
      result.reads.pop_back();
    }
    result.begin.push_back(static_cast<int64_t>(result.reads.size()));
  }
  return result;
}

template RoutedNetwork<float>::RoutedNetwork(const ModelSpec&, const Parameters<float>&);
template RoutedNetwork<double>::RoutedNetwork(const ModelSpec&, const Parameters<float>&);

std::vector<float> routed_attention(const ModelSpec& spec, const Parameters<float>& parameters) {
  const int64_t nodes = spec.nodes();
  constexpr double most = 1 << 28;
  if (static_cast<double>(nodes) * static_cast<double>(nodes) * spec.heads * spec.depth > most) {
    throw Error(ExitCode::configuration,
                fmt::format("the attention matrices of {} nodes, {} heads and {} layers", nodes,
                            spec.heads, spec.depth),
                fmt::format("at most {} numbers", most), "its tensors attn.routes say the same");
  }
  std::vector<float> attention(spec.depth * spec.heads * nodes * nodes);
  float* row = attention.data();
  for (int l = 0; l < spec.depth; ++l) {
    const StoredRoutes stored(spec, parameters, l);
    for (int h = 0; h < spec.heads; ++h) {
      for (int64_t i = 0; i < nodes; ++i, row += nodes) {
        stored.visit(h, i,
                     [&](int32_t node, double weight) { row[node] += static_cast<float>(weight); });
      }
    }
  }
  return attention;
}

}  // namespace posattn
