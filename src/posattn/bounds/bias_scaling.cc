#include "posattn/bounds/bias_scaling.h"

#include <fmt/format.h>

#include "posattn/base/error.h"
#include "posattn/model/degrees.h"

namespace posattn::bounds {
std::optional<std::string> scaling_broken_by(const ModelSpec& spec) {
  if (spec.wrap == Wrap::scale) return std::nullopt;
  const Degrees found = degrees_of(plan_of(spec));
  const std::string reason = found.broken_by();
  if (!reason.empty()) return reason;
  if (found.output == 1) return std::nullopt;
  return "classes as outputs, whose scores are the same for x and c x";
}

std::vector<TensorId> biases_that_scale(const ModelSpec& spec, const Plan& plan) {
  return spec.wrap == Wrap::scale ? std::vector<TensorId>() : degrees_of(plan).biases;
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
