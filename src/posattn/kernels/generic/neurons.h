// Leaky integrate-and-fire neurons, written once for float and double. Each has a potential v,
// which is 0 before the first step and half of which leaks away at every step t:
//   h_t = v_{t-1} + (gain x_t - v_{t-1}) / 2
//   s_t = 1 where h_t >= threshold, else 0       the spike, which is the output
//   v_t = h_t (1 - s_t)                          a neuron that has fired starts at 0 again
// A step has no derivative. Its surrogate is that of a smooth one,
//   g(u) = arctan(pi u) / pi + 1 / 2,  g'(u) = 1 / (1 + (pi u)^2),  u = h - threshold
// and none goes through the reset. Backwards in t, with e = d loss / d v_t, 0 after the last step:
//   dh_t = ds_t g'(u_t) + e (1 - s_t),  dx_t = gain dh_t / 2,  dgain += x_t dh_t / 2,  e = dh_t / 2
#pragma once

#include <cstdint>

namespace posattn::generic {

// Numbers lie [samples, steps, nodes, columns]; a neuron is a column of a node.
struct NeuronShape {
  int64_t samples = 0, steps = 1, nodes = 1, columns = 0;
  double threshold = 1;
  // s = g(u) itself, with the reset in its derivative, which then is the true one: for tests.
  bool soft = false;

  int64_t count() const { return samples * steps * nodes * columns; }
};

template <class T>
void fire(const NeuronShape& shape, const T* gain, const T* x, T* spikes);
// d spikes become dx in place; dgain +=; and the spikes once more.
template <class T>
void fire_gradient(const NeuronShape& shape, const T* gain, const T* x, T* d, T* dgain, T* spikes);

}  // namespace posattn::generic
