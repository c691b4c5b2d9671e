#include "posattn/kernels/cuda/gates.h"
#include "posattn/kernels/cuda/lanes.cuh"

namespace posattn::cuda {
namespace {

// A thread's element.
struct OwnElement {
  __device__ OwnElement(int64_t rows, int32_t columns)
      : row((int64_t{1} * blockIdx.x * block_threads + threadIdx.x) / columns),
        column((int64_t{1} * blockIdx.x * block_threads + threadIdx.x) % columns),
        surplus(row >= rows) {}
  template <class T>
  __device__ T& of(Rows<T> matrix) const {
    return matrix.data[blockIdx.y * matrix.slot_stride + row * matrix.stride + column];
  }
  int64_t row, column;
  bool surplus;
};

__device__ float gate_of(float p) { return 1 + tanhf(p / 2); }

__global__ void __launch_bounds__(block_threads)
    gate_kernel(int64_t rows, int32_t columns, Rows<const float> p, Rows<const float> x,
                Rows<float> y, bool accumulate, const SlotStep* steps) {
  const OwnElement own(rows, columns);
  if (rests(steps, blockIdx.y) || own.surplus) return;
  const float value = gate_of(own.of(p)) * own.of(x);
  float& to = own.of(y);
  to = accumulate ? to + value : value;
}

__global__ void __launch_bounds__(block_threads)
    gate_gradient_kernel(int64_t rows, int32_t columns, Rows<const float> p, Rows<const float> x,
                         Rows<const float> dy, Rows<float> dx, Rows<float> dp, bool relu,
                         const SlotStep* steps) {
  const OwnElement own(rows, columns);
  if (rests(steps, blockIdx.y) || own.surplus) return;
  const float gate = gate_of(own.of(p)), d = own.of(dy), at = own.of(x);
  own.of(dp) = d * at * (gate * (1 - gate / 2));
  own.of(dx) = relu && !(at > 0) ? 0.0f : gate * d;
}

}  // namespace

void enqueue_gate(int slots, int64_t rows, int32_t columns, Rows<const float> p,
                  Rows<const float> x, Rows<float> y, bool accumulate, const SlotStep* steps,
                  cudaStream_t stream) {
  launch(gate_kernel, blocks(rows * columns, block_threads, slots), dim3(block_threads), 0, stream,
         rows, columns, p, x, y, accumulate, steps);
}

void enqueue_gate_gradient(int slots, int64_t rows, int32_t columns, Rows<const float> p,
                           Rows<const float> x, Rows<const float> dy, Rows<float> dx,
                           Rows<float> dp, bool relu, const SlotStep* steps, cudaStream_t stream) {
  launch(gate_gradient_kernel, blocks(rows * columns, block_threads, slots), dim3(block_threads), 0,
         stream, rows, columns, p, x, dy, dx, dp, relu, steps);
}

}  // namespace posattn::cuda
