
#include "posattn/model/cuda/folding/plan.h"
#include "posattn/model/spec/tensor_names.h"

namespace posattn::cuda {

FoldedTensors::FoldedTensors(const ModelSpec& spec, const FoldedLayout& folded)
    : depth(spec.depth),
      heads(spec.heads),
      head_size(spec.head_size()),
      hidden(spec.mlp_width),
      nodes(spec.nodes()),
      real_nodes(spec.real_nodes),
      encoding_size(spec.encoding_size),
      input(folded.input),
      from_data(folded.from_data),
      direct_attention(spec.scores == Scores::direct) {
  const ParameterLayout layout(spec);
  const auto tensor = [&](int layer, std::string_view name) {
    return layout.at(names::of_layer(layer, name)).offset;
  };
  const auto map = [&](std::string_view name) {
    return Map{tensor(0, names::weight(name)), tensor(0, names::bias(name))};
  };
  parameter_stride = layout.buffer_size();
  layer_stride =
      depth == 1 ? 0
                 : tensor(1, names::weight(names::value)) - tensor(0, names::weight(names::value));
  encoder = {layout.at(names::weight(names::encoding)).offset,
             layout.at(names::bias(names::encoding)).offset};
  decoder = {layout.at(names::weight(names::decoding)).offset,
             layout.at(names::bias(names::decoding)).offset};
  value = map(names::value);
  output = map(names::output);
  first = map(names::mlp_map(0));
  second = map(names::mlp_map(1));
  if (direct_attention) {
    direct_scores = tensor(0, names::scores);
  } else if (spec.has_query_key()) {
    query_key = map(names::query_key);
  }
  if (spec.stores_positions()) stored_positions = layout.at(names::positions).offset;

  first_places = folded.places(0);
  later_places = folded.places(1);
  places_stride = folded.maps(2) - folded.maps(1);
  decoder_place = folded.decoder();
  decoder_bias_place = folded.decoder_bias();
  folded_size = folded.size();
}

FoldingPlan::FoldingPlan(const ModelSpec& spec, bool exact_maps, const float* formula_positions,
                         float* kept_products)
    : FoldedTensors(spec),
      exact(exact_maps),
      positions(formula_positions),
      kept(kept_products),
      kept_stride(kept_size(spec)) {}

int64_t FoldingPlan::kept_size(const ModelSpec& spec) {
  const int64_t h = spec.heads;
  const bool data = spec.attention == AttentionSource::data;
  return data ? (1 + 5 * h) * matrix + 2 * h * 64 : (1 + h) * matrix;
}

}  // namespace posattn::cuda
