#include "posattn/model/spec/parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "posattn/base/error.h"
#include "posattn/base/random.h"
#include "posattn/model/plan.h"
#include "posattn/model/spec/tensor_names.h"

namespace posattn {
ParameterLayout::ParameterLayout(const ModelSpec& spec) : list_(plan_of(spec).tensors) {}

const TensorInfo& ParameterLayout::at(std::string_view name) const {
  const auto found = std::ranges::find(tensors(), name, &TensorInfo::name);
  if (found == tensors().end()) {
    throw std::out_of_range(fmt::format("the model has no tensor '{}'", name));
  }
  return *found;
}

int64_t ParameterLayout::parameter_count() const {
  int64_t count = 0;
  for (const TensorInfo& tensor : tensors()) count += tensor.trained ? tensor.size : 0;
  return count;
}

InitialValues initial_values_from(std::string_view name) {
  if (name == "paper") return InitialValues::paper;
  if (name == "gpt") return InitialValues::gpt;
  throw unknown_name(ExitCode::configuration, "initial values", name, {"paper", "gpt"});
}

void initialise(Parameters<float>& parameters, uint64_t seed, InitialValues values_wanted) {
  const std::vector<TensorInfo>& tensors = parameters.layout().tensors();
  const auto branches = std::ranges::count(tensors, true, &TensorInfo::ends_branch);  // 2 depth
  uint32_t index = 0;
  for (const TensorInfo& tensor : tensors) {
    // A fixed encoding is no initial value: it has a purpose, and so numbers, of its own.
    const Purpose purpose = tensor.trained ? Purpose::initial_values : Purpose::encoding;
    RandomStream random(seed, purpose, 0, index++);
    const std::span<float> values = parameters.slice(tensor);
    const bool gain = tensor.initial == Initial::one || tensor.initial == Initial::log_4 ||
                      tensor.initial == Initial::constant ||
                      tensor.initial == Initial::positive_uniform;  // zero would be no start
    if (values_wanted == InitialValues::gpt && tensor.trained && !gain) {
      constexpr double deviation = 0.02;
      const double share = tensor.ends_branch ? std::sqrt(static_cast<double>(branches)) : 1.0;
      const double scale = tensor.shape.size() < 2 ? 0.0 : deviation / share;  // biases are zero
      for (float& value : values) value = static_cast<float>(random.normal() * scale);
      continue;
    }
    const auto fill_uniform = [&](double bound) {
      const float limit = static_cast<float>(bound);
      for (float& value : values) value = random.uniform(-limit, limit);
    };
    switch (tensor.initial) {
      case Initial::zero:
        std::fill(values.begin(), values.end(), 0.0f);
        break;
      case Initial::one:
        std::fill(values.begin(), values.end(), 1.0f);
        break;
      case Initial::log_4:
        std::fill(values.begin(), values.end(), std::log(4.0f));
        break;
      case Initial::constant:
        std::fill(values.begin(), values.end(), static_cast<float>(tensor.value));
        break;
      case Initial::positive_uniform:
        for (float& value : values) value = random.uniform(0, static_cast<float>(tensor.value));
        break;
      case Initial::uniform:
        fill_uniform(tensor.value);
        break;
      case Initial::normal:
        for (float& value : values) value = static_cast<float>(random.normal());
        break;
      case Initial::xavier_uniform: {
        const int64_t fan_out = tensor.shape[tensor.shape.size() - 2];
        fill_uniform(std::sqrt(6.0 / static_cast<double>(tensor.fan_in + fan_out)));
        break;
      }
      case Initial::fan_in_uniform:
        fill_uniform(1.0 / std::sqrt(static_cast<double>(tensor.fan_in)));
        break;
      case Initial::unit_normal_rows: {  // rows of expected squared norm 1
        const double scale = 1.0 / std::sqrt(static_cast<double>(tensor.shape.back()));
        for (float& value : values) value = static_cast<float>(random.normal() * scale);
        break;
      }
    }
  }
}

Parameters<double> to_double(const Parameters<float>& parameters) {
  Parameters<double> result(parameters.shared_layout());
  std::copy(parameters.values().begin(), parameters.values().end(), result.values().begin());
  return result;
}

template <class T>
std::vector<T> positions_of(const ModelSpec& spec, const Parameters<T>& parameters) {
  if (spec.stores_positions()) {
    const auto stored = parameters[names::positions];
    return {stored.begin(), stored.end()};
  }
  const std::vector<double> positions = formula_positions(spec);
  return {positions.begin(), positions.end()};
}

template std::vector<float> positions_of(const ModelSpec&, const Parameters<float>&);
template std::vector<double> positions_of(const ModelSpec&, const Parameters<double>&);

}  // namespace posattn
