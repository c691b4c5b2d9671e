#include <algorithm>

#include "posattn/kernels/cuda/attention.h"
#include "posattn/model/cuda/general/layout.h"

namespace posattn::cuda {
namespace {

int64_t round_up(int64_t x, int64_t multiple) { return (x + multiple - 1) / multiple * multiple; }

int64_t query_key_size(const Scores& scores) {
  if (const auto* kind = std::get_if<PositionScores>(&scores)) return kind->query_key.out;
  if (const auto* kind = std::get_if<DataScores>(&scores)) return kind->query_key.out;
  return 0;
}

}  // namespace

GeneralLayout::GeneralLayout(const FleetShape& shape, const Plan& plan, int64_t attention_budget,
                             Passes passes)
    : nodes(shape.spec.nodes()),
      samples(shape.sample_stride()),
      rows(nodes * samples),
      joined_columns(shape.spec.joined_size()),
      added(shape.spec.join == Join::add),
      floats(0),
      backward_(passes == Passes::forward_and_backward) {
  const ModelSpec& spec = shape.spec;
  const int64_t width = spec.width;
  const AttentionBlock& attention = plan.layers.front().attention;  // all layers have the same kind
  query_key_columns = query_key_size(attention.scores);
  fused = attention.from_data() && attention_fits(static_cast<int32_t>(nodes), attention.heads,
                                                  attention.key_size, attention.head_size);
  source_columns = query_key_columns + width;
  place_layers(spec, plan);
  if (fused) {
    place_fused_attention(attention);
  } else {
    place_attention(attention, attention_budget);
  }
  output = take(rows * spec.output_columns);
  const int64_t node_columns =
      std::max<int64_t>({width, spec.mlp_width, spec.output_columns, query_key_columns});
  node_table = take(nodes * node_columns);
  if (backward_) place_gradients(spec, node_columns);
}

void GeneralLayout::place_gradients(const ModelSpec& spec, int64_t node_columns) {
  for (int64_t& offset : djoined) offset = take(rows * joined_columns);
  for (LayerGradients& gradient : of_layer) {
    if (added) gradient.mlp_input = take_rows(spec.width);
    gradient.hidden.resize(spec.mlp_depth - 1);
    for (int64_t& offset : gradient.hidden) offset = take(rows * spec.mlp_width);
    gradient.mixed = take(rows * spec.width);
  }
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
      layer.attention_input = before ? take_rows(width) : x.back();
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
    layer.mlp_input = added && before ? take_rows(width) : layer.joined;
    layer.output = after ? take_rows(width) : x[l + 1];
    layer.mixed = take(rows * width);
    for (int k = 0; k + 1 < spec.mlp_depth; ++k) {
      layer.hidden.push_back(take(rows * spec.mlp_width));
      layer.maps.push_back(block.mlp.activation == Activation::relu ? layer.hidden.back()
                                                                    : take(rows * spec.mlp_width));
    }
  }
  head_input = plan.head.norm ? take_rows(width) : x.back();
}

void GeneralLayout::place_attention(const AttentionBlock& block, int64_t attention_budget) {
  const auto depth = static_cast<int64_t>(layers.size());
  attention_stride = round_up(nodes, 4);
  const int64_t sample_floats = nodes * (query_key_columns + block.heads * attention_stride);
  kept = !block.from_data() || (backward_ && sample_floats * samples * depth <= attention_budget);
  if (!block.from_data()) {
    chunk = 1;
  } else if (kept) {
    chunk = samples;
  } else {  // with their gradients
    chunk = std::clamp<int64_t>(attention_budget / (2 * sample_floats), 1, samples);
  }
  const int64_t query_key = chunk * nodes * query_key_columns;
  const int64_t attention = chunk * block.heads * nodes * attention_stride;
  for (Layer& layer : layers) {
    const bool first = &layer == &layers.front(), own = kept || first;
    layer.query_key = own ? take(query_key) : layers.front().query_key;
    layer.attention = own ? take(attention) : layers.front().attention;
    layer.value = backward_ || first ? take_rows(block.value.out) : layers.front().value;
  }
  if (!backward_) return;
  for (LayerGradients& gradient : of_layer) {
    gradient.query_key = take(query_key);
    gradient.value = take_rows(block.value.out);
  }
  dattention = take(attention);
}

void GeneralLayout::place_fused_attention(const AttentionBlock& block) {
  kept = true;
  chunk = samples;
  attention_stride = 0;
  const auto place = [&](int64_t& source, View& value) {
    source = take(rows * source_columns);
    value = {source + query_key_columns, source_columns};
  };
  for (Layer& layer : layers) {
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
