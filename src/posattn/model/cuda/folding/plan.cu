#include <string>

#include "posattn/model/cuda/folding/plan.h"

namespace posattn::cuda {

FoldedTensors::FoldedTensors(const ModelSpec& spec)
    : depth(spec.depth),
      heads(spec.heads),
      head_size(spec.head_size()),
      hidden(spec.mlp_width),
      nodes(spec.nodes()),
      real_nodes(spec.real_nodes),
      encoding_size(spec.encoding_size),
      input(spec.input_size()),
      from_data(spec.attention == AttentionSource::data),
      direct_attention(spec.direct_attention) {
  const ParameterLayout layout(spec);
  const auto tensor = [&](int layer, const std::string& name) {
    return layout.at("transformer_layers." + std::to_string(layer) + "." + name).offset;
  };
  const auto map = [&](const std::string& name) {
    return Map{tensor(0, name + ".weight"), tensor(0, name + ".bias")};
  };
  parameter_stride = layout.buffer_size();
  layer_stride = depth == 1 ? 0 : tensor(1, "attn.v_proj.weight") - tensor(0, "attn.v_proj.weight");
  encoder = {layout.at("encoding.weight").offset, layout.at("encoding.bias").offset};
  decoder = {layout.at("decoding.weight").offset, layout.at("decoding.bias").offset};
  value = map("attn.v_proj");
  output = map("attn.o_proj");
  first = map("mlp.mlp.0");
  second = map("mlp.mlp.2");
  if (direct_attention) {
    direct_scores = tensor(0, "attn.scores");
  } else {
    query_key = map("attn.qk_proj");
  }
  if (spec.stores_positions()) stored_positions = layout.at("positions.weight").offset;

  const FoldedLayout folded(spec);
  const auto places_of = [&](int layer) {
    return Places{folded.maps(layer), folded.constant(layer), folded.scores(layer),
                  folded.score_bias(layer), folded.attention(layer)};
  };
  first_places = places_of(0);
  later_places = places_of(1);
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
