#include "posattn/kernels/cuda/activation.h"
#include "posattn/kernels/cuda/lanes.cuh"

namespace posattn::cuda {
namespace {

struct Gelu {  // x Phi(x)
  static constexpr float inverse_sqrt_2 = 0.70710678118654752f;
  static constexpr float inverse_sqrt_2pi = 0.39894228040143268f;

  __device__ static float area(float x) { return 0.5f * (1 + erff(x * inverse_sqrt_2)); }
  __device__ static float value(float x) { return x * area(x); }
  __device__ static float slope(float x) {
    return area(x) + x * inverse_sqrt_2pi * expf(-0.5f * x * x);
  }
};

struct GeluTanh {  // 0.5 x (1 + tanh(root (x + cubic x^3)))
  static constexpr float root = 0.79788456080286536f, cubic = 0.044715f;

  __device__ static float bend(float x) { return tanhf(root * (x + cubic * x * x * x)); }
  __device__ static float value(float x) { return 0.5f * x * (1 + bend(x)); }
  __device__ static float slope(float x) {
    const float t = bend(x);
    return 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * root * (1 + 3 * cubic * x * x);
  }
};

template <class C>
__global__ void __launch_bounds__(block_threads)
    curve_kernel(int64_t count, int64_t slot_stride, const float* x, float* y,
                 const SlotStep* steps) {
  const int slot = blockIdx.y;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * block_threads + threadIdx.x;
  if (rests(steps, slot) || i >= count) return;
  y[slot * slot_stride + i] = C::value(x[slot * slot_stride + i]);
}

template <class C>
__global__ void __launch_bounds__(block_threads)
    curve_gradient_kernel(int64_t count, int64_t slot_stride, const float* x, float* dy,
                          const SlotStep* steps) {
  const int slot = blockIdx.y;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * block_threads + threadIdx.x;
  if (rests(steps, slot) || i >= count) return;
  dy[slot * slot_stride + i] *= C::slope(x[slot * slot_stride + i]);
}

}  // namespace

void enqueue_curve(Curve curve, int slots, int64_t count, int64_t slot_stride, const float* x,
                   float* y, const SlotStep* steps, cudaStream_t stream) {
  launch(curve == Curve::gelu ? curve_kernel<Gelu> : curve_kernel<GeluTanh>,
         blocks(count, block_threads, slots), dim3(block_threads), 0, stream, count, slot_stride, x,
         y, steps);
}

void enqueue_curve_gradient(Curve curve, int slots, int64_t count, int64_t slot_stride,
                            const float* x, float* dy, const SlotStep* steps, cudaStream_t stream) {
  launch(curve == Curve::gelu ? curve_gradient_kernel<Gelu> : curve_gradient_kernel<GeluTanh>,
         blocks(count, block_threads, slots), dim3(block_threads), 0, stream, count, slot_stride, x,
         dy, steps);
}

}  // namespace posattn::cuda
