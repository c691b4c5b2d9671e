#include "posattn/bounds/bias_scaling.h"

#include <fmt/format.h>

#include "posattn/base/error.h"
#include "posattn/model/attention/rows.h"
#include "posattn/model/spec/spec_fields.h"
#include "posattn/model/spec/tensor_names.h"

namespace posattn::bounds {
namespace {

// Every bias but those of queries and keys whose source is positions or has been divided by its
// size. Tables of scores of positions are among them where scores are added to values.
std::vector<TensorId> scaled_biases(const Plan& plan) {
  std::vector<TensorId> biases = {plan.input.values->bias};
  for (const LayerBlock& layer : plan.layers) {
    const auto& data = layer.attention.data;
    if (data && data->scale == SourceScale::none) biases.push_back(data->query_key.bias);
    if (row_of(layer.attention.weighting).adds_values && layer.attention.positions) {
      const std::vector<TensorId>& tables = layer.attention.positions->tensors;
      biases.insert(biases.end(), tables.begin(), tables.end());
    }
    biases.push_back(layer.attention.value.bias);
    biases.push_back(layer.attention.output.bias);
    for (const LinearBlock& map : layer.mlp.maps) biases.push_back(map.bias);
  }
  biases.push_back(plan.head.map.bias);
  return biases;
}

constexpr const char* fires = "neurons that fire at a threshold, which does not scale";

// Of a layer's scores in its input; the part that is the same for all samples has degree 0.
int score_degree(const ModelSpec& layer) {
  const bool scales = layer.reads_data() && layer.source_scale == SourceScale::none;
  return scales ? row_of(layer.scores).degree : 0;
}

// Sums of scores and values scale where both parts do: scores of positions as tables, which count
// among the biases, and scores of the data by their degree.
std::optional<std::string> sums_broken_by(const ModelSpec& layer) {
  const ScoreBias positions = layer.position_scores();
  if (!among(positions, {ScoreBias::none, ScoreBias::direct, ScoreBias::distance})) {
    return "values added to scores of positions, which do not scale";
  }
  if (!layer.reads_data() || score_degree(layer) == 1) return std::nullopt;
  return "values added to scores of the data that do not scale as they do";
}

// Attention is the same for x and c x where the source is, or where weights do not see a factor of
// the scores.
std::optional<std::string> attention_broken_by(const ModelSpec& layer) {
  const WeightingRow& weighting = row_of(layer.weighting);
  if (layer.spikes()) return fires;
  if (layer.attention == AttentionSource::data_and_positions &&
      layer.source_scale == SourceScale::none) {
    return "attention from data and positions, of which one scales";
  }
  if (weighting.adds_values) return sums_broken_by(layer);
  const int degree = weighting.unit_keys ? 0 : score_degree(layer);
  const bool only_data =
      layer.position_scores() == ScoreBias::none || weighting.positions_are_factors;
  const bool hidden = weighting.scale_free && only_data && layer.score_window == 0;
  if (degree == 0 || hidden) return std::nullopt;
  if (among(layer.weighting, {Weighting::relu, Weighting::sums})) {  // of degree 1 in the scores
    return fmt::format(
        "weights that grow with the scores: attention has degree {0} in its input, and L layers "
        "{0}^L, which overflows far outside the training range",
        degree + 1);
  }
  return "attention from the data: its scores change with the scale of the input";
}

}  // namespace

std::optional<std::string> scaling_broken_by(const ModelSpec& spec) {
  using S = ModelSpec;
  if (spec.wrap == Wrap::scale) return std::nullopt;
  if (spec.spikes()) return fmt::format("{} (time_steps = {})", fires, spec.time_steps);
  for (int layer = 0; layer < spec.depth; ++layer) {
    if (auto reason = attention_broken_by(spec.of_layer(layer))) {
      const std::string map = names::of_layer(layer, names::query_key);
      return fmt::format("{} ({})", *reason, names::weight(map));
    }
  }
  if (spec.positions_in_input || spec.positions_added) {
    return fmt::format("positions in the input, which do not scale with its values ({})",
                       spec.positions_added ? "positions" : names::weight(names::encoding));
  }
  if (spec.vocabulary > 0) return fmt::format("tokens, which have no scale ({})", names::tokens);
  if (spec.normalisation != Normalisation::none) {
    return fmt::format("LayerNorm, which removes the scale ({})",
                       names::of_layer(0, names::attention_norm));
  }
  if (spec.activation != Activation::relu) {
    return fmt::format("{}: only ReLUs commute with scaling", to_string(spec.activation));
  }
  if (!knows_only(spec, &S::real_nodes, &S::scratch_nodes, &S::data_columns, &S::output_columns,
                  &S::encoding, &S::encoding_size, &S::attention, &S::source_scale, &S::rotation,
                  &S::scores, &S::score_bias, &S::weighting, &S::score_window, &S::features,
                  &S::landmarks, &S::kinds, &S::loops, &S::route_places, &S::width, &S::heads,
                  &S::depth, &S::mlp_width, &S::mlp_depth, &S::biases, &S::reach, &S::causal,
                  &S::split_heads, &S::join, &S::read_nodes, &S::loss, &S::pair_columns,
                  &S::pair_classes, &S::pair_mask, &S::position_range)) {
    return "a setting for which nobody has shown it";
  }
  return std::nullopt;
}

bool attention_sees_scale(const ModelSpec& layer) { return attention_broken_by(layer).has_value(); }

std::vector<TensorId> biases_that_scale(const ModelSpec& spec, const Plan& plan) {
  return spec.wrap == Wrap::scale ? std::vector<TensorId>() : scaled_biases(plan);
}

template <class T>
Parameters<T> divide_biases(const ModelSpec& spec, const Parameters<T>& parameters, double c) {
  if (!(c > 0)) {
    throw Error(ExitCode::usage, fmt::format("biases divided by {}", c), "a number above 0");
  }
  if (const auto reason = scaling_broken_by(spec)) {
    throw Error(ExitCode::configuration, "a model with " + *reason,
                "values alone in the input, attention that does not see their scale, ReLUs",
                "as --architecture positional or scale-free, or --wrap scale");
  }
  Parameters<T> divided = parameters;
  const Plan plan = plan_of(spec);
  for (const TensorId bias : biases_that_scale(spec, plan)) {
    for (T& value : divided.slice(plan.tensors.all()[static_cast<size_t>(bias)])) {
      value = static_cast<T>(value / c);
    }
  }
  return divided;
}

template Parameters<float> divide_biases(const ModelSpec&, const Parameters<float>&, double);
template Parameters<double> divide_biases(const ModelSpec&, const Parameters<double>&, double);

}  // namespace posattn::bounds
