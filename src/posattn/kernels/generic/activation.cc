#include "posattn/kernels/generic/activation.h"

#include <cmath>
#include <numbers>

namespace posattn::generic {
namespace {

constexpr double inverse_sqrt_2 = 1 / std::numbers::sqrt2;
constexpr double inverse_sqrt_2pi = inverse_sqrt_2 * std::numbers::inv_sqrtpi;
// gelu_tanh: 0.5 x (1 + tanh(root (x + cubic x^3))).
constexpr double root = 2 * inverse_sqrt_2 * std::numbers::inv_sqrtpi;
constexpr double cubic = 0.044715;

}  // namespace

template <class T>
void relu(int64_t count, const T* x, T* y) {
  for (int64_t i = 0; i < count; ++i) y[i] = x[i] < 0 ? T(0) : x[i];  // keeps a NaN
}

template <class T>
void relu_gradient(int64_t count, const T* x, const T* dy, T* dx, T* y) {
  for (int64_t i = 0; i < count; ++i) dx[i] = x[i] > 0 ? dy[i] : T(0);
  relu(count, x, y);
}

void gelu(int64_t count, const double* x, double* y, const TileKernels&) {
  for (int64_t i = 0; i < count; ++i) y[i] = x[i] * 0.5 * (1 + std::erf(x[i] * inverse_sqrt_2));
}

void gelu_gradient(int64_t count, const double* x, const double* dy, double* dx, double* y,
                   const TileKernels& kernels) {
  for (int64_t i = 0; i < count; ++i) {
    const double area = 0.5 * (1 + std::erf(x[i] * inverse_sqrt_2));
    dx[i] = dy[i] * (area + x[i] * inverse_sqrt_2pi * std::exp(-0.5 * x[i] * x[i]));
  }
  gelu(count, x, y, kernels);
}

void gelu_tanh(int64_t count, const double* x, double* y, const TileKernels&) {
  for (int64_t i = 0; i < count; ++i) {
    const double inner = root * (x[i] + cubic * x[i] * x[i] * x[i]);
    y[i] = 0.5 * x[i] * (1 + std::tanh(inner));
  }
}

void gelu_tanh_gradient(int64_t count, const double* x, const double* dy, double* dx, double* y,
                        const TileKernels& kernels) {
  for (int64_t i = 0; i < count; ++i) {
    const double t = std::tanh(root * (x[i] + cubic * x[i] * x[i] * x[i]));
    const double inner = root * (1 + 3 * cubic * x[i] * x[i]);
    dx[i] = dy[i] * (0.5 * (1 + t) + 0.5 * x[i] * (1 - t * t) * inner);
  }
  gelu_tanh(count, x, y, kernels);
}

template void relu(int64_t, const float*, float*);
template void relu(int64_t, const double*, double*);
template void relu_gradient(int64_t, const float*, const float*, float*, float*);
template void relu_gradient(int64_t, const double*, const double*, double*, double*);

}  // namespace posattn::generic
