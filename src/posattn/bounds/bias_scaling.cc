#include "posattn/bounds/bias_scaling.h"

#include <fmt/format.h>

#include "posattn/base/error.h"
#include "posattn/model/attention/rows.h"
#include "posattn/model/plan.h"
#include "posattn/model/spec/spec_fields.h"

namespace posattn::bounds {
namespace {

// Every bias but those of queries and keys whose source is positions or has been divided by its
// size.
std::vector<TensorId> scaled_biases(const Plan& plan) {
  std::vector<TensorId> biases = {plan.input.values->bias};
  for (const LayerBlock& layer : plan.layers) {
    const auto& data = layer.attention.data;
    if (data && data->scale == SourceScale::none) biases.push_back(data->query_key.bias);
    biases.push_back(layer.attention.value.bias);
    biases.push_back(layer.attention.output.bias);
    for (const LinearBlock& map : layer.mlp.maps) biases.push_back(map.bias);
  }
  biases.push_back(plan.head.map.bias);
  return biases;
}

// Attention is the same for x and c x where the source is, or where weights do not see a factor of
// the scores.
std::optional<std::string> attention_broken_by(const ModelSpec& layer) {
  if (!layer.reads_data() || layer.source_scale != SourceScale::none) return std::nullopt;
  if (layer.attention == AttentionSource::data_and_positions) {
    return "attention from data and positions, of which one scales";
  }
  const bool hidden =
      row_of(layer.weighting).scale_free && layer.position_scores() == ScoreBias::none;
  if (row_of(layer.scores).degree == 0 || hidden) return std::nullopt;
  return "attention from the data: its scores change with the scale of the input";
}

}  // namespace

std::optional<std::string> scaling_broken_by(const ModelSpec& spec) {
  using S = ModelSpec;
  for (int layer = 0; layer < spec.depth; ++layer) {
    if (auto reason = attention_broken_by(spec.of_layer(layer))) return reason;
  }
  if (spec.positions_in_input || spec.positions_added) {
    return "positions in the input, which do not scale with its values";
  }
  if (spec.vocabulary > 0) return "tokens, which have no scale";
  if (spec.normalisation != Normalisation::none) return "LayerNorm, which removes the scale";
  if (spec.activation != Activation::relu) {
    return fmt::format("{}: only ReLUs commute with scaling", to_string(spec.activation));
  }
  if (!knows_only(spec, &S::real_nodes, &S::scratch_nodes, &S::data_columns, &S::output_columns,
                  &S::encoding, &S::encoding_size, &S::attention, &S::source_scale, &S::rotation,
                  &S::scores, &S::score_bias, &S::weighting, &S::landmarks, &S::kinds, &S::loops,
                  &S::route_places, &S::width, &S::heads, &S::depth, &S::mlp_width, &S::mlp_depth,
                  &S::biases, &S::reach, &S::causal, &S::split_heads, &S::join, &S::read_nodes,
                  &S::loss)) {
    return "a setting for which nobody has shown it";
  }
  return std::nullopt;
}

template <class T>
Parameters<T> divide_biases(const ModelSpec& spec, const Parameters<T>& parameters, double c) {
  if (!(c > 0)) {
    throw Error(ExitCode::usage, fmt::format("biases divided by {}", c), "a number above 0");
  }
  if (const auto reason = scaling_broken_by(spec)) {
    throw Error(ExitCode::configuration, "a model with " + *reason,
                "values alone in the input, attention that does not see their scale, ReLUs",
                "as --architecture positional or scale-free");
  }
  Parameters<T> divided = parameters;
  const Plan plan = plan_of(spec);
  for (const TensorId bias : scaled_biases(plan)) {
    for (T& value : divided.slice(plan.tensors.all()[static_cast<size_t>(bias)])) {
      value = static_cast<T>(value / c);
    }
  }
  return divided;
}

template Parameters<float> divide_biases(const ModelSpec&, const Parameters<float>&, double);
template Parameters<double> divide_biases(const ModelSpec&, const Parameters<double>&, double);

}  // namespace posattn::bounds
