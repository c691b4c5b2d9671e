// The names of a model's tensors, those of the authors' state dict where they have one, spelled
// here and nowhere else. A linear map's name stands for its NAME.weight [out, in] and NAME.bias.
#pragma once

#include <string>
#include <string_view>

namespace posattn::names {

inline constexpr std::string_view positions = "positions.weight";  // P [nodes, encoding_size]
inline constexpr std::string_view tokens = "tokens.weight";        // [vocabulary, width]
inline constexpr std::string_view encoding = "encoding";           // linear map
inline constexpr std::string_view decoding = "decoding";           // linear map
inline constexpr std::string_view last_norm = "norm";              // gain and shift

// Of the stream of values; all are linear maps, and gates alone have biases.
inline constexpr std::string_view value_encoding = "values.encoder";
inline constexpr std::string_view value_decoding = "values.head";

// Names inside a layer.
inline constexpr std::string_view stream_value = "values.v_proj";
inline constexpr std::string_view stream_output = "values.o_proj";
inline constexpr std::string_view mix_gate = "values.gate_mix";
inline constexpr std::string_view hidden_gate = "values.gate_hidden";
inline constexpr std::string_view stream_mlp_first = "values.mlp.0";
inline constexpr std::string_view stream_mlp_last = "values.mlp.2";
inline constexpr std::string_view query_key = "attn.qk_proj";            // linear map
inline constexpr std::string_view bias_query_key = "attn.bias_qk_proj";  // of a score bias
inline constexpr std::string_view head_scale = "attn.log_scale";  // [heads]: scores times its exp
inline constexpr std::string_view value = "attn.v_proj";          // linear map
inline constexpr std::string_view output = "attn.o_proj";         // linear map
inline constexpr std::string_view scores = "attn.scores";         // [heads, nodes, nodes]
// [heads, 2 reach - 1]: the score of distance i - j at column i - j + reach - 1.
inline constexpr std::string_view relative_scores = "attn.relative";
// [heads, scratch, scratch + 2]: of a real node that attends to it, of itself attending to a real
// node, of itself attending to each scratch node.
inline constexpr std::string_view scratch_scores = "attn.relative_scratch";
inline constexpr std::string_view kerple_factor = "attn.kerple_p";  // [heads]
inline constexpr std::string_view kerple_rate = "attn.kerple_a";    // [heads]
inline constexpr std::string_view fire_first = "attn.fire.0";       // linear map
inline constexpr std::string_view fire_last = "attn.fire.2";        // linear map
inline constexpr std::string_view fire_rate = "attn.fire_c";        // [1]
inline constexpr std::string_view fire_share = "attn.fire_share";   // [1]: of the reach
inline constexpr std::string_view buckets = "attn.buckets";         // [heads, 32]
inline constexpr std::string_view score_convolution_first = "attn.score_conv.0";
inline constexpr std::string_view score_convolution_last = "attn.score_conv.2";
inline constexpr std::string_view features = "attn.features";  // [heads, features, d_k]
inline constexpr std::string_view pair_class_scores = "attn.pair_classes";    // [heads, classes]
inline constexpr std::string_view pair_number_scores = "attn.pair_numbers";   // [heads, columns]
inline constexpr std::string_view pair_scratch_scores = "attn.pair_scratch";  // as the one above
inline constexpr std::string_view routes = "attn.routes";                     // see parameters.h
inline constexpr std::string_view route_weights = "attn.route_weights";
inline constexpr std::string_view heads = "attn.heads";  // its gain: of neurons behind A_h V_h
inline constexpr std::string_view attention_norm = "attn_norm";  // gain and shift
inline constexpr std::string_view mlp_norm = "mlp_norm";         // gain and shift

// Linear map `index` of a layer's MLP; odd places of the authors' Sequential are the ReLUs.
inline std::string mlp_map(int index) { return "mlp.mlp." + std::to_string(2 * index); }

inline std::string of_layer(int layer, std::string_view name) {
  return "transformer_layers." + std::to_string(layer) + "." + std::string(name);
}
// What training reads from the state behind a layer: a linear map.
inline std::string hint(int layer) { return "hints." + std::to_string(layer); }
inline std::string weight(std::string_view map) { return std::string(map) + ".weight"; }
inline std::string bias(std::string_view map) { return std::string(map) + ".bias"; }
// [out]: of the neurons behind a linear map.
inline std::string gain(std::string_view map) { return std::string(map) + ".gain"; }

}  // namespace posattn::names
