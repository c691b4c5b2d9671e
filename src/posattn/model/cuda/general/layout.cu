#include <algorithm>

#include "posattn/model/cuda/general/layout.h"

namespace posattn::cuda {
namespace {

int64_t round_up(int64_t x, int64_t multiple) { return (x + multiple - 1) / multiple * multiple; }

}  // namespace

GeneralLayout::GeneralLayout(const FleetShape& shape, int64_t attention_budget)
    : nodes(shape.spec.nodes()), samples(shape.sample_stride()), rows(nodes * samples) {
  const ModelSpec& spec = shape.spec;
  const bool from_data = spec.attention != AttentionSource::positions;
  query_key_columns = spec.direct_attention ? 0 : int64_t{2} * spec.heads * spec.key_size();
  attention_stride = round_up(nodes, 4);
  const int64_t sample_floats = nodes * (query_key_columns + spec.heads * attention_stride);
  kept = !from_data || sample_floats * samples * spec.depth <= attention_budget;
  if (!from_data) {
    chunk = 1;
  } else if (kept) {
    chunk = samples;
  } else {  // with their gradients
    chunk = std::clamp<int64_t>(attention_budget / (2 * sample_floats), 1, samples);
  }

  floats = 0;
  const auto take = [&](int64_t count) {
    const int64_t offset = floats;
    floats += round_up(count, 32);
    return offset;
  };
  const int64_t width = spec.width;
  for (int l = 0; l < spec.depth; ++l) {
    Layer layer;
    layer.joined = take(rows * 2 * width);
    layer.value = take(rows * width);
    layer.mixed = take(rows * width);
    for (int k = 0; k + 1 < spec.mlp_depth; ++k)
      layer.hidden.push_back(take(rows * spec.mlp_width));
    if (l == 0 || kept) {
      layer.query_key = take(chunk * nodes * query_key_columns);
      layer.attention = take(chunk * spec.heads * nodes * attention_stride);
    } else {
      layer.query_key = layers[0].query_key;
      layer.attention = layers[0].attention;
    }
    layers.push_back(layer);
  }
  decoder_input = take(rows * width);
  output = take(rows * spec.output_columns);
  for (int64_t& offset : djoined) offset = take(rows * 2 * width);
  dhidden[0] = take(rows * spec.mlp_width);
  dhidden[1] = spec.mlp_depth > 2 ? take(rows * spec.mlp_width) : dhidden[0];
  dmixed = take(rows * width);
  dvalue = take(rows * width);
  dquery_key = take(chunk * nodes * query_key_columns);
  dattention = take(chunk * spec.heads * nodes * attention_stride);
  const int64_t columns =
      std::max<int64_t>({width, spec.mlp_width, spec.output_columns, query_key_columns});
  node_table = take(nodes * columns);
  node_sums = take(nodes * columns);
}

}  // namespace posattn::cuda
