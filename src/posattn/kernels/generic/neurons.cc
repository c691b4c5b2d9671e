#include "posattn/kernels/generic/neurons.h"

#include <cmath>
#include <numbers>
#include <vector>

namespace posattn::generic {
namespace {

template <class T>
constexpr T pi = std::numbers::pi_v<T>;

// One step of the columns of a node: h, the spikes, and v as it is after them.
template <class T>
void step(const NeuronShape& shape, const T* gain, const T* x, T* v, T* h, T* spikes) {
  const auto threshold = static_cast<T>(shape.threshold);
  for (int64_t c = 0; c < shape.columns; ++c) h[c] = v[c] + (gain[c] * x[c] - v[c]) / 2;
  if (shape.soft) {
    for (int64_t c = 0; c < shape.columns; ++c) {
      spikes[c] = std::atan(pi<T> * (h[c] - threshold)) / pi<T> + T(0.5);
    }
  } else {
    for (int64_t c = 0; c < shape.columns; ++c) spikes[c] = h[c] >= threshold ? T(1) : T(0);
  }
  for (int64_t c = 0; c < shape.columns; ++c) v[c] = h[c] * (1 - spikes[c]);
}

// visit(first) for each node of each sample: where its first step lies. Steps are `stride` apart.
template <class Visitor>
void for_nodes(const NeuronShape& shape, const Visitor& visit) {
  for (int64_t s = 0; s < shape.samples; ++s) {
    for (int64_t i = 0; i < shape.nodes; ++i) {
      visit((s * shape.steps * shape.nodes + i) * shape.columns);
    }
  }
}

}  // namespace

template <class T>
void fire(const NeuronShape& shape, const T* gain, const T* x, T* spikes) {
  const int64_t stride = shape.nodes * shape.columns;
  std::vector<T> v(shape.columns), h(shape.columns);
  for_nodes(shape, [&](int64_t first) {
    v.assign(shape.columns, T(0));
    for (int64_t t = 0; t < shape.steps; ++t) {
      step(shape, gain, x + first + t * stride, v.data(), h.data(), spikes + first + t * stride);
    }
  });
}

template <class T>
void fire_gradient(const NeuronShape& shape, const T* gain, const T* x, T* d, T* dgain, T* spikes) {
  const int64_t stride = shape.nodes * shape.columns, columns = shape.columns;
  const auto threshold = static_cast<T>(shape.threshold);
  std::vector<T> v(columns), h(shape.steps * columns), e(columns);
  for_nodes(shape, [&](int64_t first) {
    v.assign(columns, T(0));
    e.assign(columns, T(0));
    for (int64_t t = 0; t < shape.steps; ++t) {
      const int64_t at = first + t * stride;
      step(shape, gain, x + at, v.data(), &h[t * columns], spikes + at);
    }
    for (int64_t t = shape.steps - 1; t >= 0; --t) {
      const T *now = &h[t * columns], *s = spikes + first + t * stride,
              *in = x + first + t * stride;
      T* ds = d + first + t * stride;
      for (int64_t c = 0; c < columns; ++c) {
        const T u = pi<T> * (now[c] - threshold), slope = 1 / (1 + u * u);
        const T through_reset = shape.soft ? e[c] * now[c] : T(0);
        const T half = ((ds[c] - through_reset) * slope + e[c] * (1 - s[c])) / 2;
        e[c] = half;
        dgain[c] += half * in[c];
        ds[c] = half * gain[c];
      }
    }
  });
}

template void fire(const NeuronShape&, const float*, const float*, float*);
template void fire(const NeuronShape&, const double*, const double*, double*);
template void fire_gradient(const NeuronShape&, const float*, const float*, float*, float*, float*);
template void fire_gradient(const NeuronShape&, const double*, const double*, double*, double*,
                            double*);

}  // namespace posattn::generic
