#include "posattn/model/attention/linear_maps.h"

#include <type_traits>

#include "posattn/kernels/generic/linear.h"

namespace posattn {

template <class T>
LinearMaps<T>::LinearMaps(const Plan& plan) : transposed_(plan.tensors.all().size()) {
  if (plan.input.values) maps_.push_back(*plan.input.values);
  if (plan.input.stream) maps_.push_back(*plan.input.stream);
  for (const LayerBlock& layer : plan.layers) {
    if (layer.attention.mixes()) {
      maps_.push_back(layer.attention.value);
      maps_.push_back(layer.attention.output);
    }
    if (const auto& values = layer.values) {
      maps_.insert(maps_.end(), {values->value, values->output});
      maps_.insert(maps_.end(), values->mlp.begin(), values->mlp.end());
      if (values->mix_gate) maps_.push_back(*values->mix_gate);
      if (values->hidden_gate) maps_.push_back(*values->hidden_gate);
    }
    maps_.insert(maps_.end(), layer.mlp.maps.begin(), layer.mlp.maps.end());
    if (layer.hint) maps_.push_back(*layer.hint);
    const AttentionBlock& attention = layer.attention;
    if (attention.data) maps_.push_back(attention.data->query_key);
    if (attention.positions && attention.positions->query_key) {
      maps_.push_back(*attention.positions->query_key);
    }
  }
  maps_.push_back(plan.head.map);
}

template <class T>
void LinearMaps<T>::prepare(const Parameters<T>& parameters) {
  parameters_ = &parameters;
  if constexpr (std::is_same_v<T, float>) {
    for (const LinearBlock& map : maps_) {
      if (int64_t{1} * map.in * map.out > generic::most_tile_weight) continue;
      std::vector<float>& transposed = transposed_[map.weight];
      transposed.resize(int64_t{1} * map.in * map.out);
      tile_kernels().transpose(map.out, map.in, tensor(map.weight), map.in, transposed.data(),
                               map.out);
    }
  }
}

template <class T>
void LinearMaps<T>::forward(const LinearBlock& map, int64_t rows, const T* x, T* y) const {
  generic::linear(rows, map.in, map.out, x, tensor(map.weight), transposed_[map.weight].data(),
                  map.bias == no_tensor ? nullptr : tensor(map.bias), y);
}

template <class T>
void LinearMaps<T>::input_gradient(const LinearBlock& map, int64_t rows, const T* dy,
                                   bool accumulate, T* dx) const {
  generic::linear_input_gradient(rows, map.in, map.out, tensor(map.weight), dy, accumulate, dx);
}

template <class T>
void LinearMaps<T>::weight_gradient(const LinearBlock& map, int64_t rows, const T* x, const T* dy,
                                    T* sums) const {
  const std::vector<TensorInfo>& tensors = parameters_->layout().tensors();
  generic::linear_weight_gradient(
      rows, map.in, map.out, x, dy, sums + tensors[map.weight].offset,
      map.bias == no_tensor ? nullptr : sums + tensors[map.bias].offset);
}

template class LinearMaps<float>;
template class LinearMaps<double>;

}  // namespace posattn
