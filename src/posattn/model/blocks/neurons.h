// Neurons of a BlockNetwork, forward and backward: definitions for block_network.cc, which includes
// them and instantiates the class.
#pragma once

#include <algorithm>

#include "posattn/model/blocks/block_network.h"

namespace posattn {

template <class T>
generic::NeuronShape BlockNetwork<T>::neuron_shape(const NeuronBlock& neurons, int64_t rows,
                                                   int64_t columns) const {
  return {.samples = rows / (steps() * nodes()),
          .steps = steps(),
          .nodes = nodes(),
          .columns = columns,
          .threshold = neurons.threshold,
          .soft = soft_spikes_};
}

template <class T>
void BlockNetwork<T>::fire(const NeuronBlock& neurons, int64_t rows, std::vector<T>& y,
                           std::vector<T>& currents) const {
  if (neurons.gain == no_tensor) return;
  currents.resize(y.size());
  std::swap(currents, y);
  const auto columns = static_cast<int64_t>(y.size()) / rows;
  generic::fire(neuron_shape(neurons, rows, columns), tensor(neurons.gain), currents.data(),
                y.data());
}

template <class T>
void BlockNetwork<T>::fire_backward(const NeuronBlock& neurons, int64_t rows,
                                    const std::vector<T>& currents, T* d, Scratch& scratch,
                                    std::span<T> sums) const {
  if (neurons.gain == no_tensor) return;
  scratch.spikes.resize(currents.size());
  const auto columns = static_cast<int64_t>(currents.size()) / rows;
  generic::fire_gradient(neuron_shape(neurons, rows, columns), tensor(neurons.gain),
                         currents.data(), d, gradient(sums, neurons.gain), scratch.spikes.data());
}

template <class T>
const T* BlockNetwork<T>::fire_backward_of(const NeuronBlock& neurons, int64_t rows,
                                           const std::vector<T>& currents, const T* d,
                                           Scratch& scratch, std::span<T> sums) const {
  if (neurons.gain == no_tensor) return d;
  scratch.dcurrents.assign(d, d + currents.size());
  fire_backward(neurons, rows, currents, scratch.dcurrents.data(), scratch, sums);
  return scratch.dcurrents.data();
}

template <class T>
void BlockNetwork<T>::repeat_input(int64_t samples, std::vector<T>& x) const {
  const auto frame = static_cast<int64_t>(x.size()) / samples;
  x.resize(x.size() * steps());
  for (int64_t to = samples * steps() - 1; to >= 0; --to) {  // backwards: none is lost
    const int64_t from = to / steps();
    if (from != to) std::copy_n(&x[from * frame], frame, &x[to * frame]);
  }
}

template <class T>
void BlockNetwork<T>::sum_steps(int64_t samples, const std::vector<T>& x, T factor,
                                std::vector<T>& sum) const {
  const auto frame = static_cast<int64_t>(x.size()) / (samples * steps());
  sum.assign(samples * frame, T(0));
  for (int64_t f = 0; f < samples * steps(); ++f) {
    for (int64_t i = 0; i < frame; ++i) sum[f / steps() * frame + i] += factor * x[f * frame + i];
  }
}

}  // namespace posattn
