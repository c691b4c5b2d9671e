#include <algorithm>

#include "posattn/kernels/cuda/attention.h"
#include "posattn/model/cuda/general/layout.h"

namespace posattn::cuda {
namespace {

int64_t round_up(int64_t x, int64_t multiple) { return (x + multiple - 1) / multiple * multiple; }

int64_t data_columns(const AttentionBlock& block) {
  return block.data ? block.data->query_key.out : 0;
}
int64_t position_columns(const AttentionBlock& block) {
  return block.positions && block.positions->query_key ? block.positions->query_key->out : 0;
}
template <class Columns>
int64_t most(const Plan& plan, const Columns& columns) {
  int64_t most = 0;
  for (const LayerBlock& layer : plan.layers) most = std::max(most, columns(layer.attention));
  return most;
}

// Of what the MLP reads where attention's output is added.
int64_t mlp_columns(const ModelSpec& spec) {
  return spec.width + (spec.symbols_read_values ? spec.value_width : 0);
}

// Plain dot products of the data.
bool fuses(const AttentionBlock& block, int64_t nodes) {
  return block.data && !block.positions && block.data->scores == Scores::dot &&
         block.data->scale == SourceScale::none && block.weighting == Weighting::softmax &&
         attention_fits(static_cast<int32_t>(nodes), block.heads, block.data->key_size,
                        block.head_size);
}

}  // namespace

GeneralLayout::GeneralLayout(const FleetShape& shape, const Plan& plan, int64_t attention_budget,
                             Passes passes)
    : nodes(shape.spec.nodes()),
      samples(shape.sample_stride()),
      rows(nodes * samples),
      joined_columns(shape.spec.joined_size() + shape.spec.values_in_source()),
      added(shape.spec.join == Join::add),
      value_mlp(shape.spec.value_mlp_width > 0),
      gates(shape.spec.value_gates != ValueGates::none),
      floats(0),
      backward_(passes == Passes::forward_and_backward) {
  const ModelSpec& spec = shape.spec;
  const int64_t width = spec.width;
  fused = std::ranges::all_of(plan.layers, [&](const LayerBlock& layer) {
    return !spec.two_streams() && fuses(layer.attention, nodes);
  });
  const int64_t query_key_columns =
      std::max(most(plan, data_columns), most(plan, position_columns));
  source_columns = query_key_columns + width;
  place_layers(spec, plan);
  if (spec.two_streams()) place_values(spec);
  head_input = plan.head.reads_values ? v.back() : plan.head.norm ? take_rows(width) : x.back();
  if (fused) {
    place_fused_attention(plan.layers.front().attention);
  } else {
    place_attention(spec, plan, attention_budget);
  }
  output = take(rows * spec.output_columns);
  if (spec.wrap == Wrap::scale) {
    inputs = take_rows(spec.data_columns);
    inputs_inverse = take(samples);
  }
  const int64_t node_columns =
      std::max<int64_t>({width, spec.mlp_width, spec.output_columns, query_key_columns});
  node_table = take(nodes * node_columns);
  if (backward_) place_gradients(spec, node_columns);
}

void GeneralLayout::place_gradients(const ModelSpec& spec, int64_t node_columns) {
  for (int64_t& offset : djoined) offset = take(rows * joined_columns);
  for (LayerGradients& gradient : of_layer) {
    if (added) gradient.mlp_input = take_rows(mlp_columns(spec));
    gradient.hidden.resize(spec.mlp_depth - 1);
    for (int64_t& offset : gradient.hidden) offset = take(rows * spec.mlp_width);
    gradient.mixed = take(rows * spec.width);
    if (spec.two_streams()) gradient.values = take_values(spec);
  }
  for (View& view : dvalues) view = take_rows(spec.value_width);
  norm_terms = spec.normalisation == Normalisation::none ? 0 : take(rows * spec.width);
  for (int64_t& offset : node_sums) offset = take(nodes * node_columns);
}

int64_t GeneralLayout::take(int64_t count) {
  const int64_t offset = floats;
  floats += round_up(count, 32);
  return offset;
}

void GeneralLayout::place_layers(const ModelSpec& spec, const Plan& plan) {
  const int64_t width = spec.width;
  const auto places_of_earlier = [&](int l) { return !backward_ && l >= 2; };
  layers.resize(spec.depth);
  for (int l = 0; l < spec.depth; ++l) {
    const bool before = plan.layers[l].when == Normalisation::before;
    Layer& layer = layers[l];
    if (places_of_earlier(l)) {
      layer = layers[l - 2];
      x.push_back(x[l - 2]);
      continue;
    }
    layer.joined = take_rows(joined_columns);
    if (added) {
      x.push_back(take_rows(width));
      layer.attention_input = before ? take_rows(joined_columns) : x.back();
    } else {
      layer.attention_input = layer.joined;
      x.push_back(before ? take_rows(width) : layer.attention_input);
    }
  }
  x.push_back(take_rows(width));
  for (int l = 0; l < spec.depth; ++l) {
    const LayerBlock& block = plan.layers[l];
    const bool before = block.when == Normalisation::before,
               after = block.when == Normalisation::after;
    Layer& layer = layers[l];
    if (places_of_earlier(l)) {
      layer = layers[l - 2];
      if (!after) layer.output = x[l + 1];
      continue;
    }
    layer.attended = !added  ? View{layer.joined.offset + width, layer.joined.stride}
                     : after ? take_rows(width)
                             : layer.joined;
    layer.mlp_input = added && before ? take_rows(mlp_columns(spec)) : layer.joined;
    layer.output = after ? take_rows(width) : x[l + 1];
    layer.mixed = take(rows * width);
    for (int k = 0; k + 1 < spec.mlp_depth; ++k) {
      layer.hidden.push_back(take(rows * spec.mlp_width));
      layer.maps.push_back(block.mlp.activation == Activation::relu ? layer.hidden.back()
                                                                    : take(rows * spec.mlp_width));
    }
  }
}

GeneralLayout::Values GeneralLayout::take_values(const ModelSpec& spec) {
  const int64_t width = spec.value_width, hidden = spec.value_mlp_width;
  const bool gated = spec.value_gates == ValueGates::mix_and_hidden;
  Values values{};
  values.value = take(rows * width);
  values.mixed = take(rows * width);
  if (gates) values.output = take_rows(width);
  if (value_mlp) values.sum = take_rows(width);
  values.mix_gates = gates ? take(rows * 2 * width) : 0;
  values.hidden = take(rows * hidden);
  values.gated = gated ? take(rows * hidden) : values.hidden;
  values.hidden_gates = gated ? take(rows * hidden) : 0;
  return values;
}

void GeneralLayout::place_values(const ModelSpec& spec) {
  const int64_t width = spec.width;
  for (size_t l = 0; l < layers.size(); ++l) {
    Layer& layer = layers[l];
    const bool of_earlier = !backward_ && l >= 2;
    v.push_back(of_earlier ? v[l - 2] : take_rows(spec.value_width));
    if (of_earlier) {
      layer.values = layers[l - 2].values;
      continue;
    }
    layer.values = take_values(spec);
    layer.values.unit = {layer.attention_input.offset + width, layer.attention_input.stride};
    layer.values.next_unit = {layer.mlp_input.offset + width, layer.mlp_input.stride};
    layer.values.unit_inverse = take(samples);
    layer.values.next_unit_inverse = take(samples);
  }
  v.push_back(take_rows(spec.value_width));
  for (size_t l = 0; l < layers.size(); ++l) {
    Values& values = layers[l].values;
    if (!value_mlp) values.sum = v[l + 1];
    if (!gates) values.output = values.sum;
  }
}

void GeneralLayout::place_attention(const ModelSpec& spec, const Plan& plan,
                                    int64_t attention_budget) {
  const auto depth = static_cast<int64_t>(layers.size());
  attention_stride = round_up(nodes, 4);
  const int64_t matrices = spec.heads * nodes * attention_stride;
  const int64_t most_columns = most(plan, data_columns);
  const bool any_data = most_columns > 0;
  const int64_t sample_floats = nodes * most_columns + matrices;
  kept = !any_data || (backward_ && sample_floats * samples * depth <= attention_budget);
  if (!any_data) {
    chunk = 1;
  } else if (kept) {
    chunk = samples;
  } else {  // with their gradients
    chunk = std::clamp<int64_t>(attention_budget / (2 * sample_floats), 1, samples);
  }
  // What layers share where it is not kept: of the largest size.
  const int64_t inverses = chunk * nodes * 2 * spec.heads;
  Layer common{};
  if (any_data && !kept) {
    common.query_key = take(chunk * nodes * most_columns);
    common.key_inverse = take(inverses);
    common.attention = take(chunk * matrices);
    common.softmax = take(chunk * matrices);
  }
  const View shared_source = backward_ ? View{} : take_rows(spec.width);
  for (size_t l = 0; l < layers.size(); ++l) {
    const AttentionBlock& block = plan.layers[l].attention;
    Layer& layer = layers[l];
    layer.query_key_columns = data_columns(block);
    layer.position_columns = position_columns(block);
    layer.value = backward_ || l == 0 ? take_rows(spec.width) : layers.front().value;
    layer.source = layer.attention_input;
    if (block.positions) {
      layer.position_query_key = take(nodes * layer.position_columns);
      layer.position_scores = take(matrices);
    }
    if (!block.data) {
      layer.attention = layer.softmax = layer.position_scores;
      continue;
    }
    layer.query_key = kept ? take(chunk * nodes * layer.query_key_columns) : common.query_key;
    layer.key_inverse = kept ? take(inverses) : common.key_inverse;
    layer.attention = kept ? take(chunk * matrices) : common.attention;
    layer.softmax = block.weighting == Weighting::softmax ? layer.attention
                    : kept                                ? take(chunk * matrices)
                                                          : common.softmax;
    if (block.data->scale != SourceScale::none) {
      layer.source = backward_ ? take_rows(spec.width) : shared_source;
      layer.source_inverse = take(rows);
    }
  }
  if (!backward_) return;
  for (LayerGradients& gradient : of_layer) {
    gradient.query_key = take(chunk * nodes * most_columns);
    gradient.position_query_key = take(nodes * most(plan, position_columns));
    gradient.position_scores = take(matrices);
    gradient.along = take(chunk * nodes * spec.heads);
    gradient.value = take_rows(spec.width);
  }
  dattention = take(chunk * matrices);
  dsource = any_data ? take(rows * spec.width) : 0;
  along_sums = take(nodes * spec.heads);
}

void GeneralLayout::place_fused_attention(const AttentionBlock& block) {
  kept = true;
  chunk = samples;
  attention_stride = 0;
  const auto place = [&](int64_t& source, View& value) {
    source = take(rows * source_columns);
    value = {source + source_columns - block.value.out, source_columns};
  };
  for (Layer& layer : layers) {
    layer.query_key_columns = source_columns - block.value.out;
    layer.source = layer.attention_input;
    if (backward_ || &layer == &layers.front()) {
      place(layer.query_key, layer.value);
      layer.totals = take(rows * block.heads);
    } else {
      layer.query_key = layers.front().query_key;
      layer.value = layers.front().value;
      layer.totals = layers.front().totals;
    }
  }
  if (!backward_) return;
  for (LayerGradients& gradient : of_layer) place(gradient.query_key, gradient.value);
}

}  // namespace posattn::cuda
