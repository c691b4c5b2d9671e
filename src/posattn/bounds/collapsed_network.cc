#include "posattn/bounds/collapsed_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "posattn/base/error.h"
#include "posattn/model/blocks/reference_network.h"
#include "posattn/model/spec/spec_fields.h"
#include "posattn/model/spec/tensor_names.h"

namespace posattn::bounds {
namespace {

using simulation::AffineMap;
using simulation::map_of;

// Why the linear maps between two ReLUs of this model do not merge into the form above.
std::string why_not_collapsible(const ModelSpec& spec) {
  using S = ModelSpec;
  if (spec.routed()) return "reads by routes, which have no weights to bound";
  if (spec.vocabulary > 0) return "reads tokens";
  if (spec.loss != Loss::squared_error) return "is trained on classes";
  if (spec.data_columns != 1 || spec.output_columns != 1) return "has several numbers per node";
  if (spec.read_nodes != 0) return "is read at some nodes only";
  if (spec.wrap != Wrap::none) return "divides by the size of its input";
  if (spec.join != Join::concatenate) return "adds residuals";
  if (spec.normalisation != Normalisation::none) return "normalises";
  if (spec.activation != Activation::relu) return "has another activation than ReLU";
  if (spec.mlp_depth != 2) return "has MLPs of other than two maps";
  const bool positional = spec.attention == AttentionSource::positions;
  if (!positional && spec.rotation == Rotation::rope)
    return "turns queries and keys of data (RoPE)";
  const bool known =
      positional
          ? knows_only(spec, &S::real_nodes, &S::scratch_nodes, &S::attention, &S::encoding,
                       &S::encoding_size, &S::width, &S::heads, &S::depth, &S::mlp_width,
                       &S::biases, &S::split_heads, &S::rotation, &S::scores, &S::reach,
                       &S::causal) &&
                among(spec.scores, {Scores::dot, Scores::direct, Scores::distance})
          : spec.attention == AttentionSource::data && spec.positions_in_input &&
                knows_only(spec, &S::real_nodes, &S::scratch_nodes, &S::attention,
                           &S::positions_in_input, &S::encoding, &S::encoding_size, &S::width,
                           &S::heads, &S::depth, &S::mlp_width, &S::biases, &S::split_heads);
  return known ? "" : "is of architecture " + preset_name(spec);
}

// M_h = (W_Q E)' (W_K E) / sqrt(d_k) and mu_h = (W_K E)' (W_Q e + b_Q) / sqrt(d_k). What is
// constant over j, the key bias with it, cancels in the softmax.
void add_scores(const ModelSpec& spec, const AffineMap& query_key, const AffineMap& input,
                CollapsedLayer& layer) {
  const int key_size = spec.key_size();
  const double scale = 1 / std::sqrt(static_cast<double>(key_size));
  for (int h = 0; h < spec.heads; ++h) {
    const int first = 2 * h * key_size;
    const Matrix query_weight = some_rows(query_key.weight, first, key_size);
    Matrix key = product(some_rows(query_key.weight, first + key_size, key_size), input.weight);
    for (double& x : key.values) x *= scale;
    std::vector<double> query_offset = product(query_weight, input.bias);
    for (int k = 0; k < key_size; ++k) query_offset[k] += query_key.bias[first + k];
    layer.scores.push_back(product(transposed(product(query_weight, input.weight)), key));
    layer.score_offsets.push_back(product(transposed(key), query_offset));
  }
}

// T_h = G_h E with G_0 = W1_x and G_h = W1_a O_h V_h;
// t = b1 + W1_a (b_O + O b_V) + sum_h G_h e, as rows of A_h sum to one.
CollapsedLayer layer_of(const ModelSpec& spec, const Parameters<double>& parameters, int index,
                        const AffineMap& input) {
  const int width = spec.width, head_size = spec.head_size();
  const auto map = [&](std::string_view name, int in) {
    return map_of(parameters, names::of_layer(index, name), in);
  };
  const AffineMap mlp = map(names::mlp_map(0), 2 * width), value = map(names::value, width),
                  output = map(names::output, width);
  const Matrix from_state = some_columns(mlp.weight, 0, width),
               from_attention = some_columns(mlp.weight, width, width);

  std::vector<Matrix> maps = {from_state};
  for (int h = 0; h < spec.heads; ++h) {
    maps.push_back(
        product(product(from_attention, some_columns(output.weight, h * head_size, head_size)),
                some_rows(value.weight, h * head_size, head_size)));
  }
  std::vector<double> from_values = product(output.weight, value.bias);
  simulation::add(from_values, output.bias);
  CollapsedLayer layer;
  layer.offset = mlp.bias;
  simulation::add(layer.offset, product(from_attention, from_values));
  for (const Matrix& g : maps) {
    simulation::add(layer.offset, product(g, input.bias));
    layer.maps.push_back(product(g, input.weight));
  }
  if (spec.attention == AttentionSource::data) {
    add_scores(spec, map(names::query_key, width), input, layer);
  }
  return layer;
}

// A_h of every layer, which attention from positions computes without data.
void add_attention(const ModelSpec& spec, const Parameters<double>& parameters,
                   std::vector<CollapsedLayer>& layers) {
  const std::vector<double> anything(static_cast<size_t>(spec.real_nodes));
  const std::vector<double> all = reference_attention(
      spec, parameters, {.inputs = anything, .samples = 1, .real_nodes = spec.real_nodes});
  auto next = all.begin();
  for (CollapsedLayer& layer : layers) {
    for (int h = 0; h < spec.heads; ++h) {
      Matrix& attention = layer.attention.emplace_back(spec.nodes(), spec.nodes());
      std::copy_n(next, attention.values.size(), attention.values.begin());
      next += static_cast<int64_t>(attention.values.size());
    }
  }
}

}  // namespace

CollapsedNetwork collapse(const ModelSpec& spec, const Parameters<double>& parameters,
                          const std::string& name) {
  if (const std::string why = why_not_collapsible(spec); !why.empty()) {
    throw Error(ExitCode::configuration, fmt::format("{} {}", name, why),
                "the paper's positional or standard Transformer of numbers: one number "
                "per node, MLPs of two maps with a ReLU, no residual, no normalisation",
                "posattn train --architecture positional");
  }
  CollapsedNetwork network{.positional = spec.attention == AttentionSource::positions,
                           .real_nodes = spec.real_nodes,
                           .nodes = spec.nodes(),
                           .layers = {},
                           .output = {}};
  AffineMap input = simulation::encoder_of(spec, parameters);
  for (int l = 0; l < spec.depth; ++l) {
    network.layers.push_back(layer_of(spec, parameters, l, input));
    input = map_of(parameters, names::of_layer(l, names::mlp_map(1)), spec.mlp_width);
  }
  if (network.positional) add_attention(spec, parameters, network.layers);
  const AffineMap decoder = map_of(parameters, std::string(names::decoding), spec.width);
  network.output = product(decoder.weight, input.weight).values;
  network.output_offset = product(decoder.weight, input.bias)[0] + decoder.bias[0];
  return network;
}

Matrix first_state(const CollapsedNetwork& network, std::span<const double> x) {
  Matrix state(network.nodes, network.layers.front().in());
  for (int i = 0; i < network.nodes; ++i) {
    if (i < network.real_nodes) state(i, 0) = x[i];
    if (!network.positional) state(i, 1 + i) = 1;
  }
  return state;
}

Matrix attention_of(const CollapsedLayer& layer, int head, const Matrix& state) {
  if (layer.scores.empty()) return layer.attention[head];
  Matrix attention = product(product(state, layer.scores[head]), transposed(state));
  const std::vector<double> offsets = product(state, layer.score_offsets[head]);
  for (int i = 0; i < attention.rows; ++i) {
    for (int j = 0; j < attention.columns; ++j) attention(i, j) += offsets[j];
  }
  softmax(attention);
  return attention;
}

Matrix run_layer(const CollapsedLayer& layer, const Matrix& state) {
  Matrix result(state.rows, layer.out());
  for (int i = 0; i < result.rows; ++i) std::ranges::copy(layer.offset, result.row(i));
  for (int h = 0; h <= layer.heads(); ++h) {
    const Matrix mixed = h == 0 ? state : product(attention_of(layer, h - 1, state), state);
    simulation::add(result.values, product(mixed, transposed(layer.maps[h])).values);
  }
  for (double& s : result.values) s = s < 0 ? 0 : s;  // NaN stays
  return result;
}

std::vector<double> forward(const CollapsedNetwork& network, std::span<const double> x,
                            int64_t samples) {
  const auto n = static_cast<size_t>(network.real_nodes);
  std::vector<double> outputs(static_cast<size_t>(samples) * n);
  for (size_t sample = 0; sample < static_cast<size_t>(samples); ++sample) {
    Matrix state = first_state(network, x.subspan(sample * n, n));
    for (const CollapsedLayer& layer : network.layers) state = run_layer(layer, state);
    for (size_t i = 0; i < n; ++i) {
      outputs[sample * n + i] =
          network.output_offset + simulation::dot(network.output.data(),
                                                  state.row(static_cast<int>(i)),
                                                  network.output.size());
    }
  }
  return outputs;
}

}  // namespace posattn::bounds
