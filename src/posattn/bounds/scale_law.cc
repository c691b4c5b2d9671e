#include "posattn/bounds/scale_law.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "posattn/base/error.h"
#include "posattn/bounds/bias_scaling.h"
#include "posattn/model/attention/rows.h"
#include "posattn/model/degrees.h"

namespace posattn::bounds {
namespace {

// A weighting that mixes by itself does not take the average of values.
bool averages(const AttentionChoices& kind) {
  return row_of(kind.weighting).in_double.mix == nullptr;
}

}  // namespace

ScaleLaw scale_law(const Model& model) {
  const ModelSpec& spec = model.spec;
  ScaleLaw law;
  const Degrees degrees = degrees_of(plan_of(spec));
  for (int l = 0; l < spec.depth; ++l) {
    const AttentionDegrees& layer = degrees.layers[static_cast<size_t>(l)];
    law.layers.push_back(
        {.kind = spec.of_layer(l), .scores = layer.scores, .attention = layer.weights});
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
  const Degrees degrees = degrees_of(plan_of(spec));
  for (int l = 0; l < spec.depth; ++l) {
    const AttentionDegrees& layer = degrees.layers[static_cast<size_t>(l)];
    if (!layer.weights && !averages(spec.of_layer(l))) return layer.fault;
  }
  if (!degrees.fault.empty()) return degrees.fault;
  return degrees.output == 1 ? std::nullopt : scaling_broken_by(spec);
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
  const Degrees degrees = degrees_of(plan);
  Parameters<T> result = parameters;
  const auto slice = [&](TensorId id) {
    return result.slice(plan.tensors.all()[static_cast<size_t>(id)]);
  };
  for (const TensorId bias : biases_that_scale(spec, plan)) {
    for (T& value : slice(bias)) value = static_cast<T>(value / c);
  }
  for (int l = 0; spec.wrap == Wrap::none && l < spec.depth; ++l) {
    if (degrees.layers[static_cast<size_t>(l)].weights) continue;  // it does not see the scale
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
