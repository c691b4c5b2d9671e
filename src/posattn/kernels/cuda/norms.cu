#include "posattn/kernels/cuda/lanes.cuh"
#include "posattn/kernels/cuda/norms.h"

namespace posattn::cuda {
namespace {

__host__ __device__ int64_t part_count(const PartShape& shape) {
  return shape.by_sample ? shape.samples : int64_t{1} * shape.nodes * shape.samples;
}

constexpr int warp_lanes = 32, warps = block_threads / warp_lanes;

__device__ float inverse_of(float square) { return square > 0 ? 1 / sqrtf(square) : 0.0f; }

// A warp's vector: queries and keys by turns.
struct OwnVector {
  __device__ OwnVector(const KeyShape& shape, SlotVector log_scale)
      : lane(threadIdx.x % warp_lanes) {
    int64_t index = static_cast<int64_t>(blockIdx.x) * warps + threadIdx.x / warp_lanes;
    surplus = index >= shape.rows * 2 * shape.heads;
    if (surplus) index = 0;
    row = index / (2 * shape.heads);
    vector = static_cast<int>(index % (2 * shape.heads));
    norm = vector % 2 == 1 ? 1.0f
                           : expf(log_scale.data[blockIdx.y * log_scale.slot_stride + vector / 2]);
  }
  template <class T>
  __device__ T* of(Rows<T> rows, int64_t column) const {
    return rows.data + blockIdx.y * rows.slot_stride + row * rows.stride + column;
  }
  int lane, vector;
  int64_t row;
  float norm;
  bool surplus;
};

__global__ void __launch_bounds__(block_threads)
    unit_keys_kernel(KeyShape shape, SlotVector log_scale, Rows<float> query_key,
                     Rows<float> inverse, const SlotStep* steps) {
  if (rests(steps, blockIdx.y)) return;
  const OwnVector own(shape, log_scale);
  float* x = own.of(query_key, static_cast<int64_t>(own.vector) * shape.size);
  float square = 0;
  for (int c = own.lane; c < shape.size; c += warp_lanes) square += x[c] * x[c];
  const float scale = inverse_of(sum_of_lanes<warp_lanes>(square));
  if (own.surplus) return;
  for (int c = own.lane; c < shape.size; c += warp_lanes) x[c] *= own.norm * scale;
  if (own.lane == 0) *own.of(inverse, own.vector) = scale;
}

__global__ void __launch_bounds__(block_threads)
    unit_keys_gradient_kernel(KeyShape shape, SlotVector log_scale, Rows<const float> query_key,
                              Rows<const float> inverse, Rows<float> d, Rows<float> along,
                              const SlotStep* steps) {
  if (rests(steps, blockIdx.y)) return;
  const OwnVector own(shape, log_scale);
  const int64_t first = static_cast<int64_t>(own.vector) * shape.size;
  const float* y = own.of(query_key, first);
  float* dy = own.of(d, first);
  float dot = 0;
  for (int c = own.lane; c < shape.size; c += warp_lanes) dot += dy[c] * y[c];
  dot = sum_of_lanes<warp_lanes>(dot);
  if (own.surplus) return;
  const float factor = own.norm * *own.of(inverse, own.vector);
  const float share = dot / (own.norm * own.norm);
  for (int c = own.lane; c < shape.size; c += warp_lanes) dy[c] = factor * (dy[c] - y[c] * share);
  if (own.lane == 0 && own.vector % 2 == 0) *own.of(along, own.vector / 2) = dot;
}

// A warp's part: visit(row) for its rows that are there.
struct OwnPart {
  __device__ OwnPart(const PartShape& of_shape, const SlotStep* steps)
      : shape(of_shape),
        lane(threadIdx.x % warp_lanes),
        first_absent(steps == nullptr ? of_shape.absent_end : steps[blockIdx.y].real_nodes) {
    part = static_cast<int64_t>(blockIdx.x) * warps + threadIdx.x / warp_lanes;
    surplus = part >= part_count(shape);
    if (surplus) part = 0;
    int present = 1;
    if (shape.by_sample) present = shape.nodes - max(0, shape.absent_end - first_absent);
    norm = sqrtf(static_cast<float>(present) * static_cast<float>(shape.width));
  }
  template <class Visit>
  __device__ void visit(Visit use) const {
    if (!shape.by_sample) return use(part, true);
    for (int node = 0; node < shape.nodes; ++node) {
      use(static_cast<int64_t>(node) * shape.samples + part,
          node < first_absent || node >= shape.absent_end);
    }
  }
  template <class T>
  __device__ T* of(Rows<T> rows, int64_t row) const {
    return rows.data + blockIdx.y * rows.slot_stride + row * rows.stride;
  }
  PartShape shape;
  int lane, first_absent;
  int64_t part;
  float norm;
  bool surplus;
};

__global__ void __launch_bounds__(block_threads)
    scale_parts_kernel(PartShape shape, Rows<const float> x, Rows<float> y, Rows<float> inverse,
                       const SlotStep* steps) {
  if (rests(steps, blockIdx.y)) return;
  const OwnPart own(shape, steps);
  float square = 0;
  own.visit([&](int64_t row, bool present) {
    const float* from = own.of(x, row);
    for (int c = own.lane; present && c < shape.width; c += warp_lanes) square += from[c] * from[c];
  });
  const float scale = inverse_of(sum_of_lanes<warp_lanes>(square));
  if (own.surplus) return;
  own.visit([&](int64_t row, bool) {
    const float* from = own.of(x, row);
    float* to = own.of(y, row);
    for (int c = own.lane; c < shape.width; c += warp_lanes) to[c] = from[c] * (own.norm * scale);
  });
  if (own.lane == 0) *own.of(inverse, own.part) = scale;
}

__global__ void __launch_bounds__(block_threads)
    scale_parts_gradient_kernel(PartShape shape, Rows<const float> y, Rows<const float> inverse,
                                Rows<const float> dy, Rows<float> dx, bool accumulate,
                                const SlotStep* steps) {
  if (rests(steps, blockIdx.y)) return;
  const OwnPart own(shape, steps);
  float dot = 0;
  own.visit([&](int64_t row, bool present) {
    const float *at = own.of(y, row), *d = own.of(dy, row);
    for (int c = own.lane; present && c < shape.width; c += warp_lanes) dot += d[c] * at[c];
  });
  dot = sum_of_lanes<warp_lanes>(dot);
  if (own.surplus) return;
  const float factor = own.norm * *own.of(inverse, own.part), share = dot / (own.norm * own.norm);
  own.visit([&](int64_t row, bool present) {
    const float *at = own.of(y, row), *d = own.of(dy, row);
    float* to = own.of(dx, row);
    for (int c = own.lane; c < shape.width; c += warp_lanes) {
      const float value = present ? factor * (d[c] - at[c] * share) : 0.0f;
      to[c] = accumulate ? to[c] + value : value;
    }
  });
}

__global__ void __launch_bounds__(block_threads)
    multiply_back_kernel(PartShape shape, Rows<const float> inverse, int32_t columns, Rows<float> y,
                         const SlotStep* steps) {
  if (rests(steps, blockIdx.y)) return;
  const OwnPart own(shape, steps);
  if (own.surplus) return;
  const float scale = *own.of(inverse, own.part) * own.norm, size = scale > 0 ? 1 / scale : 0.0f;
  own.visit([&](int64_t row, bool) {
    for (int c = own.lane; c < columns; c += warp_lanes) own.of(y, row)[c] *= size;
  });
}

}  // namespace

void enqueue_unit_keys(const KeyShape& shape, SlotVector log_scale, Rows<float> query_key,
                       Rows<float> inverse, const SlotStep* steps, cudaStream_t stream) {
  launch(unit_keys_kernel, blocks(shape.rows * 2 * shape.heads, warps, shape.slots),
         dim3(block_threads), 0, stream, shape, log_scale, query_key, inverse, steps);
}

void enqueue_unit_keys_gradient(const KeyShape& shape, SlotVector log_scale,
                                Rows<const float> query_key, Rows<const float> inverse,
                                Rows<float> d, Rows<float> along, const SlotStep* steps,
                                cudaStream_t stream) {
  launch(unit_keys_gradient_kernel, blocks(shape.rows * 2 * shape.heads, warps, shape.slots),
         dim3(block_threads), 0, stream, shape, log_scale, query_key, inverse, d, along, steps);
}

void enqueue_scale_parts(const PartShape& shape, Rows<const float> x, Rows<float> y,
                         Rows<float> inverse, const SlotStep* steps, cudaStream_t stream) {
  launch(scale_parts_kernel, blocks(part_count(shape), warps, shape.slots), dim3(block_threads), 0,
         stream, shape, x, y, inverse, steps);
}

void enqueue_scale_parts_gradient(const PartShape& shape, Rows<const float> y,
                                  Rows<const float> inverse, Rows<const float> dy, Rows<float> dx,
                                  bool accumulate, const SlotStep* steps, cudaStream_t stream) {
  launch(scale_parts_gradient_kernel, blocks(part_count(shape), warps, shape.slots),
         dim3(block_threads), 0, stream, shape, y, inverse, dy, dx, accumulate, steps);
}

void enqueue_multiply_back(const PartShape& shape, Rows<const float> inverse, int32_t columns,
                           Rows<float> y, const SlotStep* steps, cudaStream_t stream) {
  launch(multiply_back_kernel, blocks(part_count(shape), warps, shape.slots), dim3(block_threads),
         0, stream, shape, inverse, columns, y, steps);
}

}  // namespace posattn::cuda
