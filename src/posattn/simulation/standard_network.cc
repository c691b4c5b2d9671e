#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "posattn/base/error.h"
#include "posattn/model/spec/spec_fields.h"
#include "posattn/model/spec/tensor_names.h"
#include "posattn/simulation/folded_layer.h"
#include "posattn/simulation/matrix.h"

namespace posattn::simulation {
namespace {

void require_standard(const Model& model, const std::string& name) {
  const ModelSpec& spec = model.spec;
  const auto refuse = [&](const std::string& what, const std::string& expected) {
    throw Error(ExitCode::configuration, fmt::format("{} {}", name, what), expected,
                "posattn train --architecture standard");
  };
  using S = ModelSpec;
  ModelSpec paper = spec;
  apply_preset("standard", paper);
  paper.encoding = spec.encoding;
  if (spec != paper || spec.mlp_depth != 2 ||
      !knows_only(spec, &S::real_nodes, &S::scratch_nodes, &S::data_columns, &S::output_columns,
                  &S::attention, &S::positions_in_input, &S::encoding, &S::encoding_size, &S::width,
                  &S::heads, &S::depth, &S::mlp_width, &S::causal)) {
    refuse(
        fmt::format("is a model of architecture {}", preset_name(spec)),
        "the paper's standard Transformer: attention from data, MLPs of two maps, numbers in and "
        "out");
  }
  if (model.origin.variable_length) {
    refuse("was trained on several lengths", "one length: positions decide who reads whom");
  }
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
                           .output = some_columns(output.weight, h * head_size, head_size)});
  }
  return layer;
}

// out [rows of x, out]
Matrix applied(const AffineMap& map, const Matrix& x) {
  Matrix result(x.rows, map.weight.rows);
  for (int i = 0; i < x.rows; ++i) map.apply(x.row(i), result.row(i));
  return result;
}

Matrix attention_of(const StandardHead& head, const Matrix& x, bool causal) {
  Matrix scores = product(applied(head.query, x), transposed(applied(head.key, x)));
  if (causal) mask_later(scores);
  softmax(scores);
  return scores;
}

}  // namespace

StandardNetwork read_standard(const Model& model, const std::string& name) {
  require_standard(model, name);
  const ModelSpec& spec = model.spec;
  StandardNetwork network{.real_nodes = spec.real_nodes,
                          .nodes = spec.nodes(),
                          .data_columns = spec.data_columns,
                          .causal = spec.causal,
                          .layers = {},
                          .decoder = {}};
  const Parameters<double> parameters = to_double(model.parameters);
  AffineMap start = encoder_of(spec, parameters);
  for (int l = 0; l < spec.depth; ++l) {
    network.layers.push_back(layer_of(spec, parameters, l, std::move(start)));
    start = map_of(parameters, names::of_layer(l, names::mlp_map(1)), spec.mlp_width);
  }
  const AffineMap decoder = map_of(parameters, std::string(names::decoding), spec.width);
  network.decoder = {product(decoder.weight, start.weight), decoder.bias};
  add(network.decoder.bias, product(decoder.weight, start.bias));
  return network;
}

Matrix first_words(const StandardNetwork& network, const float* input) {
  Matrix words(network.nodes, network.data_columns + network.nodes);
  for (int i = 0; i < network.nodes; ++i) {
    if (i < network.real_nodes) {
      std::copy_n(input + i * network.data_columns, network.data_columns, words.row(i));
    }
    words(i, network.data_columns + i) = 1;
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
  std::vector<double> outputs(static_cast<size_t>(network.real_nodes) * columns);
  for (int i = 0; i < network.real_nodes; ++i) {
    network.decoder.apply(words.row(i), &outputs[static_cast<size_t>(i) * columns]);
  }
  return outputs;
}

}  // namespace posattn::simulation
