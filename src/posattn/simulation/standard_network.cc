#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "posattn/base/error.h"
#include "posattn/kernels/generic/rows.h"
#include "posattn/model/spec/spec_fields.h"
#include "posattn/model/spec/tensor_names.h"
#include "posattn/simulation/folded_layer.h"
#include "posattn/simulation/matrix.h"

namespace posattn::simulation {
namespace {

void require_standard(const Model& model, const std::string& name) {
  const ModelSpec& spec = model.spec;
  const auto refuse = [&](const std::string& what, const char* expected, const char* hint) {
    throw Error(ExitCode::configuration, fmt::format("{} {}", name, what), expected, hint);
  };
  if (spec.normalisation != Normalisation::none) {
    refuse("has LayerNorm between its layers", "no normalisation: tables are of one number",
           "--normalisation none");
  }
  using S = ModelSpec;
  if (spec.attention != AttentionSource::data || spec.mlp_depth != 2 ||
      !knows_only(spec, &S::real_nodes, &S::scratch_nodes, &S::data_columns, &S::output_columns,
                  &S::attention, &S::positions_in_input, &S::positions_added, &S::encoding,
                  &S::encoding_size, &S::width, &S::heads, &S::depth, &S::mlp_width, &S::causal,
                  &S::split_heads, &S::vocabulary, &S::tokens_and_values, &S::fixed_tokens,
                  &S::tied_output, &S::read_nodes, &S::loss, &S::rotation)) {
    refuse(fmt::format("is a model of architecture {}", preset_name(spec)),
           "the paper's standard Transformer: attention from data, MLPs of two maps, attention "
           "joined to x, all biases",
           "posattn train --architecture standard");
  }
  if (spec.vocabulary > 0 && spec.data_columns > 0 && !spec.tokens_and_values &&
      spec.positions_in_input) {
    refuse("has positions at nodes of numbers and none at nodes of tokens",
           "positions at all nodes", "--positions added");
  }
}

// The encoder over [data | one-hot token | one-hot place]. A token takes the place of numbers and
// of their bias, unless nodes hold both, and of positions that are joined to the numbers.
// `places` are the rows of P.
AffineMap start_of(const ModelSpec& spec, const Parameters<double>& parameters, int real_nodes,
                   const std::vector<int>& places) {
  const int data = spec.data_columns, first_place = data + spec.vocabulary, width = spec.width;
  const bool replaced = spec.vocabulary > 0 && !spec.tokens_and_values;
  AffineMap start{Matrix(width, first_place + static_cast<int>(places.size())),
                  std::vector<double>(width)};
  const auto add_places = [&](size_t from, const auto& of_place) {
    for (size_t i = from; i < places.size(); ++i) {
      for (int r = 0; r < width; ++r) {
        start.weight(r, first_place + static_cast<int>(i)) = of_place(r, places[i]);
      }
    }
  };
  if (spec.input_size() > 0) {
    const AffineMap encoder = encoder_of(spec, parameters);
    start.bias = encoder.bias;
    for (int r = 0; r < width; ++r) std::copy_n(encoder.weight.row(r), data, start.weight.row(r));
    if (spec.positions_in_input) {
      add_places(replaced ? real_nodes : 0,
                 [&](int r, int place) { return encoder.weight(r, data + place); });
    }
  }
  if (spec.positions_added) {
    const std::vector<double> positions = positions_of(spec, parameters);
    add_places(0, [&](int r, int place) { return positions[int64_t{1} * place * width + r]; });
  }
  for (int token = 0; token < spec.vocabulary; ++token) {
    const double* row = &parameters[names::tokens][int64_t{1} * token * width];
    for (int r = 0; r < width; ++r) {
      start.weight(r, data + token) = row[r] - (replaced ? start.bias[r] : 0);
    }
  }
  return start;
}

AffineMap decoder_of(const ModelSpec& spec, const Parameters<double>& parameters) {
  if (!spec.tied_output) return map_of(parameters, std::string(names::decoding), spec.width);
  AffineMap decoder{Matrix(spec.vocabulary, spec.width), std::vector<double>(spec.vocabulary)};
  std::ranges::copy(parameters[names::tokens], decoder.weight.values.begin());
  return decoder;
}

AffineMap rows_of(const AffineMap& map, int first, int count, double factor) {
  AffineMap result{some_rows(map.weight, first, count),
                   {map.bias.begin() + first, map.bias.begin() + first + count}};
  for (double& x : result.weight.values) x *= factor;
  for (double& x : result.bias) x *= factor;
  return result;
}

StandardLayer layer_of(const ModelSpec& spec, const Parameters<double>& parameters, int index,
                       AffineMap start) {
  const auto map = [&](std::string_view name, int in) {
    return map_of(parameters, names::of_layer(index, name), in);
  };
  const int width = spec.width, key = spec.key_size(), head_size = spec.head_size();
  const AffineMap query_key = map(names::query_key, width), value = map(names::value, width),
                  output = map(names::output, width);
  const double scale = 1 / std::sqrt(std::sqrt(static_cast<double>(key)));
  StandardLayer layer{.start = std::move(start),
                      .heads = {},
                      .output_bias = output.bias,
                      .mlp = map(names::mlp_map(0), 2 * width)};
  for (int h = 0; h < spec.heads; ++h) {
    layer.heads.push_back({.query = rows_of(query_key, 2 * h * key, key, scale),
                           .key = rows_of(query_key, (2 * h + 1) * key, key, scale),
                           .value = rows_of(value, h * head_size, head_size, 1),
                           .output = some_columns(output.weight, h * head_size, head_size),
                           .rotated = spec.rotation == Rotation::rope});
  }
  return layer;
}

// out [rows of x, out]
Matrix applied(const AffineMap& map, const Matrix& x) {
  Matrix result(x.rows, map.weight.rows);
  for (int i = 0; i < x.rows; ++i) map.apply(x.row(i), result.row(i));
  return result;
}

// Row i as a node at place i.
void rotate(Matrix& vectors) {
  std::vector<int> places(vectors.rows);
  std::iota(places.begin(), places.end(), 0);
  generic::rotate<double>(vectors.rows, 1, vectors.columns, places, 1, vectors.values.data());
}

Matrix attention_of(const StandardHead& head, const Matrix& x, bool causal) {
  Matrix queries = applied(head.query, x), keys = applied(head.key, x);
  if (head.rotated) {
    rotate(queries);
    rotate(keys);
  }
  Matrix scores = product(queries, transposed(keys));
  if (causal) mask_later(scores);
  softmax(scores);
  return scores;
}

}  // namespace

void rotate(Matrix& vectors, int place) {
  const std::vector<int> places(vectors.rows, place);
  generic::rotate<double>(vectors.rows, 1, vectors.columns, places, 1, vectors.values.data());
}

StandardNetwork read_standard(const Model& model, const std::string& name, int real_nodes) {
  require_standard(model, name);
  const ModelSpec& spec = model.spec;
  if (spec.rotation == Rotation::rope && spec.scratch_nodes > 0 && real_nodes != spec.real_nodes) {
    throw Error(ExitCode::configuration,
                fmt::format("{} with RoPE at {} nodes, with scratch nodes that stand at {}", name,
                            real_nodes, spec.real_nodes),
                "the longest of its lengths, or no scratch nodes: steps are one place apart");
  }
  StandardNetwork network{.real_nodes = real_nodes,
                          .nodes = real_nodes + spec.scratch_nodes,
                          .data_columns = spec.data_columns,
                          .vocabulary = spec.vocabulary,
                          .tokens_and_values = spec.tokens_and_values,
                          .first_read = spec.first_read(real_nodes),
                          .nodes_read = spec.nodes_read(real_nodes),
                          .causal = spec.causal,
                          .rotated = spec.rotation == Rotation::rope,
                          .layers = {},
                          .decoder = {}};
  std::vector<int> places(network.nodes);
  std::iota(places.begin(), places.begin() + real_nodes, 0);
  std::iota(places.begin() + real_nodes, places.end(), spec.real_nodes);
  const Parameters<double> parameters = to_double(model.parameters);
  AffineMap start = start_of(spec, parameters, real_nodes, places);
  for (int l = 0; l < spec.depth; ++l) {
    network.layers.push_back(layer_of(spec, parameters, l, std::move(start)));
    start = map_of(parameters, names::of_layer(l, names::mlp_map(1)), spec.mlp_width);
  }
  const AffineMap decoder = decoder_of(spec, parameters);
  network.decoder = {product(decoder.weight, start.weight), decoder.bias};
  add(network.decoder.bias, product(decoder.weight, start.bias));
  return network;
}

Matrix first_words(const StandardNetwork& network, const Dataset& inputs, int64_t sample) {
  const int columns = network.data_columns;
  const int64_t first = sample * network.real_nodes;
  Matrix words(network.nodes, network.place_words() + network.nodes);
  for (int i = 0; i < network.nodes; ++i) {
    words(i, network.place_words() + i) = 1;
    if (i >= network.real_nodes) continue;
    const int token = network.vocabulary > 0 ? inputs.tokens[first + i] : -1;
    if (token >= 0) words(i, columns + token) = 1;
    if (token >= 0 && !network.tokens_and_values) continue;
    std::copy_n(inputs.inputs.data() + (first + i) * columns, columns, words.row(i));
  }
  return words;
}

Matrix run_layer(const StandardLayer& layer, const Matrix& words, bool causal, Attention* attention,
                 const Attention* frozen) {
  const Matrix x = applied(layer.start, words);
  const int width = layer.width();
  Matrix joined(x.rows, 2 * width);
  for (int i = 0; i < x.rows; ++i) {
    std::copy_n(x.row(i), width, joined.row(i));
    std::ranges::copy(layer.output_bias, joined.row(i) + width);
  }
  for (size_t h = 0; h < layer.heads.size(); ++h) {
    const StandardHead& head = layer.heads[h];
    Matrix weights = frozen == nullptr ? attention_of(head, x, causal) : (*frozen)[h];
    const Matrix out = product(product(weights, applied(head.value, x)), transposed(head.output));
    for (int i = 0; i < x.rows; ++i) {
      for (int c = 0; c < width; ++c) joined(i, width + c) += out(i, c);
    }
    if (attention != nullptr) attention->push_back(std::move(weights));
  }
  Matrix hidden = applied(layer.mlp, joined);
  for (double& u : hidden.values) u = u < 0 ? 0 : u;  // NaN stays
  return hidden;
}

std::vector<double> decode(const StandardNetwork& network, const Matrix& words) {
  const int columns = network.decoder.weight.rows;
  std::vector<double> outputs(static_cast<size_t>(network.nodes_read) * columns);
  for (int i = 0; i < network.nodes_read; ++i) {
    network.decoder.apply(words.row(network.first_read + i),
                          &outputs[static_cast<size_t>(i) * columns]);
  }
  return outputs;
}

}  // namespace posattn::simulation
