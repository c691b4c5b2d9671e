#include "posattn/model/parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "posattn/base/random.h"

namespace posattn {
namespace {

constexpr int64_t alignment = 16;  // elements: one 64-byte line of floats

}  // namespace

ParameterLayout::ParameterLayout(const ModelSpec& spec) {
  const int64_t width = spec.width, heads = spec.heads, key = spec.key_size();
  const auto linear = [&](const std::string& name, int64_t out, int64_t in) {
    add(name + ".weight", {out, in}, Initial::fan_in_uniform, in);
    add(name + ".bias", {out}, Initial::fan_in_uniform, in);
  };
  const auto projection = [&](const std::string& name, int64_t out, int64_t in) {
    add(name + ".weight", {out, in}, Initial::xavier_uniform, in);
    add(name + ".bias", {out}, Initial::zero);
  };

  if (spec.stores_positions()) {
    add("positions.weight", {spec.nodes(), spec.encoding_size}, Initial::unit_normal_rows, 0,
        spec.encoding == Encoding::learned);
  }
  linear("encoding", width, spec.input_size());
  for (int layer = 0; layer < spec.depth; ++layer) {
    const std::string prefix = fmt::format("transformer_layers.{}.", layer);
    if (spec.routed) {
      add_routes(prefix + "attn.", spec);
    } else if (spec.direct_attention) {
      add(prefix + "attn.scores", {heads, spec.nodes(), spec.nodes()}, Initial::xavier_uniform,
          spec.nodes());
    } else {
      projection(prefix + "attn.qk_proj", 2 * key * heads, key);
    }
    projection(prefix + "attn.v_proj", width, width);
    projection(prefix + "attn.o_proj", width, width);
    for (int map = 0; map < spec.mlp_depth; ++map) {
      // Odd indices of the authors' Sequential are the ReLUs.
      linear(fmt::format("{}mlp.mlp.{}", prefix, 2 * map),
             map == spec.mlp_depth - 1 ? width : spec.mlp_width,
             map == 0 ? 2 * width : spec.mlp_width);
    }
  }
  linear("decoding", spec.output_columns, width);
}

void ParameterLayout::add_routes(const std::string& attention, const ModelSpec& spec) {
  std::vector<int64_t> shape = {spec.heads, spec.nodes()};
  if (spec.route_places > 1) shape.push_back(spec.route_places);
  add(attention + "routes", shape, Initial::zero, 0, false);
  tensors_.back().integers = true;
  if (spec.route_places > 1) add(attention + "route_weights", shape, Initial::zero, 0, false);
}

void ParameterLayout::add(std::string name, std::vector<int64_t> shape, Initial initial,
                          int64_t fan_in, bool trained) {
  TensorInfo tensor{std::move(name), std::move(shape), buffer_size_, 1,
                    initial,         fan_in,           trained,      false};
  for (const int64_t extent : tensor.shape) tensor.size *= extent;
  buffer_size_ += (tensor.size + alignment - 1) / alignment * alignment;
  tensors_.push_back(std::move(tensor));
}

const TensorInfo& ParameterLayout::at(std::string_view name) const {
  const auto found = std::find_if(tensors_.begin(), tensors_.end(),
                                  [&](const TensorInfo& tensor) { return tensor.name == name; });
  if (found == tensors_.end()) {
    throw std::out_of_range(fmt::format("the model has no tensor '{}'", name));
  }
  return *found;
}

int64_t ParameterLayout::parameter_count() const {
  int64_t count = 0;
  for (const TensorInfo& tensor : tensors_) count += tensor.trained ? tensor.size : 0;
  return count;
}

void initialise(Parameters<float>& parameters, uint64_t seed) {
  uint32_t index = 0;
  for (const TensorInfo& tensor : parameters.layout().tensors()) {
    // A fixed encoding is no initial value: it has a purpose, and so numbers, of its own.
    const Purpose purpose = tensor.trained ? Purpose::initial_values : Purpose::encoding;
    RandomStream random(seed, purpose, 0, index++);
    const std::span<float> values = parameters.slice(tensor);
    const auto fill_uniform = [&](double bound) {
      const float limit = static_cast<float>(bound);
      for (float& value : values) value = random.uniform(-limit, limit);
    };
    switch (tensor.initial) {
      case Initial::zero:
        std::fill(values.begin(), values.end(), 0.0f);
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
    const auto stored = parameters["positions.weight"];
    return {stored.begin(), stored.end()};
  }
  const std::vector<double> positions = formula_positions(spec);
  return {positions.begin(), positions.end()};
}

template std::vector<float> positions_of(const ModelSpec&, const Parameters<float>&);
template std::vector<double> positions_of(const ModelSpec&, const Parameters<double>&);

}  // namespace posattn
