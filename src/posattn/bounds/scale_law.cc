#include "posattn/bounds/scale_law.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "posattn/base/error.h"
#include "posattn/bounds/bias_scaling.h"
#include "posattn/model/attention/rows.h"

namespace posattn::bounds {
namespace {

// The degree of a layer's scores: what is added to them or convolved with them has degree 0.
std::optional<int> degree_of_scores(const AttentionChoices& kind) {
  if (kind.scores == Scores::agreements) return {};  // of spikes
  if (!kind.reads_data() || kind.source_scale != SourceScale::none) return 0;
  if (kind.attention == AttentionSource::data_and_positions) return {};  // of which one scales
  const int degree = row_of(kind.scores).degree;
  const bool alone = kind.position_scores() == ScoreBias::none && kind.score_window == 0;
  return degree == 0 || alone ? std::optional(degree) : std::nullopt;
}

// A weighting that mixes by itself does not take the average of values.
bool averages(const AttentionChoices& kind) {
  return row_of(kind.weighting).in_double.mix == nullptr;
}

}  // namespace

ScaleLaw scale_law(const Model& model) {
  const ModelSpec& spec = model.spec;
  ScaleLaw law;
  for (int l = 0; l < spec.depth; ++l) {
    const ModelSpec layer = spec.of_layer(l);
    LayerScaling scaling{.kind = layer, .scores = degree_of_scores(layer), .attention = 0};
    if (attention_sees_scale(layer)) scaling.attention.reset();
    law.layers.push_back(scaling);
  }
  if (const auto reason = scaling_broken_by(spec)) {
    const auto rest = cooling_broken_by(spec);
    law.broken_by = rest && rest != reason ? *reason + ", and " + *rest : *reason;
    return law;
  }
  const Plan plan = plan_of(spec);
  std::vector<std::string> biases;  // that are not zero
  for (const TensorId bias : biases_that_scale(spec, plan)) {
    const TensorInfo& tensor = plan.tensors.all()[static_cast<size_t>(bias)];
    if (std::ranges::any_of(model.parameters.slice(tensor), [](float b) { return b != 0; })) {
      biases.push_back(tensor.name);
    }
  }
  if (!biases.empty()) {
    law.broken_by =
        fmt::format("{} biases, which do not scale ({}, ...)", biases.size(), biases.front());
  }
  return law;
}

std::optional<std::string> cooling_broken_by(const ModelSpec& spec) {
  if (spec.wrap == Wrap::scale) return std::nullopt;
  for (int l = 0; l < spec.depth; ++l) {
    const ModelSpec layer = spec.of_layer(l);
    if (attention_sees_scale(layer) && !averages(layer)) return scaling_broken_by(layer);
  }
  ModelSpec without_attention = spec;  // that could see the scale
  static_cast<AttentionChoices&>(without_attention) = {};
  without_attention.kinds.clear();
  without_attention.route_places = 1;
  return scaling_broken_by(without_attention);
}

template <class T>
Parameters<T> cooled(const ModelSpec& spec, const Parameters<T>& parameters, double c) {
  if (!(c > 0 && std::isfinite(c))) {
    throw Error(ExitCode::usage, fmt::format("a model cooled by {}", c), "a finite number above 0");
  }
  if (const auto reason = cooling_broken_by(spec)) {
    throw Error(ExitCode::configuration, "a model with " + *reason,
                "values alone in the input, attention that averages them, ReLUs",
                "as --architecture m2, or --wrap scale");
  }
  const Plan plan = plan_of(spec);
  Parameters<T> result = parameters;
  const auto slice = [&](TensorId id) {
    return result.slice(plan.tensors.all()[static_cast<size_t>(id)]);
  };
  for (const TensorId bias : biases_that_scale(spec, plan)) {
    for (T& value : slice(bias)) value = static_cast<T>(value / c);
  }
  for (int l = 0; spec.wrap == Wrap::none && l < spec.depth; ++l) {
    if (!attention_sees_scale(spec.of_layer(l))) continue;
    const LinearBlock& map = plan.layers[static_cast<size_t>(l)].attention.data->query_key;
    const TensorInfo& bias = plan.tensors.all()[static_cast<size_t>(map.bias)];
    std::ranges::copy(parameters.slice(bias), result.slice(bias).begin());
    const auto weights = slice(map.weight);
    for (int64_t row = 0; row < map.out; ++row) {  // columns of positions stay
      for (int64_t column = 0; column < spec.width; ++column) {
        T& weight = weights[static_cast<size_t>(row * map.in + column)];
        weight = static_cast<T>(weight * c);
      }
    }
  }
  return result;
}

template Parameters<float> cooled(const ModelSpec&, const Parameters<float>&, double);
template Parameters<double> cooled(const ModelSpec&, const Parameters<double>&, double);

}  // namespace posattn::bounds
