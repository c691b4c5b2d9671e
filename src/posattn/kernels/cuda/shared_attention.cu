#include <algorithm>

#include "posattn/kernels/cuda/attention_tiles.cuh"
#include "posattn/kernels/cuda/lanes.cuh"
#include "posattn/kernels/cuda/shared_attention.h"

namespace posattn::cuda {
namespace {

constexpr int most_fragments = most_nodes / 8;
constexpr int most_samples = 16;    // of a block of mixing, whose fragments of attention stay
constexpr int wanted_blocks = 528;  // of mixing: four for every multiprocessor of an H200
constexpr int most_parts = 16;      // of samples, of the attention's gradient
constexpr int least_samples = 4;    // of a part
constexpr int flush_samples = 8;    // after so many, fp32 sums leave the accumulators
constexpr int buffers = 2;          // one sample computed, the next on its way

// A head's place in a sample's row of node 0; nodes are stride * samples apart.
template <class T>
__device__ T* head_of(const MixingShape& shape, Rows<T> rows, int slot, int sample, int head) {
  return rows.data + slot * rows.slot_stride + sample * rows.stride + head * shape.head_size;
}

// This lane's part of 16 rows of the attention, or of its transpose, as a left operand.
struct AttentionRows {
  float values[most_fragments][4];

  __device__ AttentionRows(const float* attention, int64_t stride, int first, int nodes,
                           bool transposed, bool causal) {
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const auto element = [&](int row, int column) {
      const int query = transposed ? column : row, key = transposed ? row : column;
      const bool read = query < nodes && key < nodes && (!causal || key <= query);
      return read ? attention[query * stride + key] : 0.0f;
    };
#pragma unroll
    for (int f = 0; f < most_fragments; ++f) {
      if (8 * f >= nodes) break;
#pragma unroll
      for (int e = 0; e < 4; ++e) {  // in the tensor core's order
        values[f][e] = element(first + g + e % 2 * 8, 8 * f + 2 * t + e / 2);
      }
    }
  }
};

template <int fragments, bool exact>
__global__ void __launch_bounds__(most_threads, exact ? 1 : 2)
    mixing_kernel(MixingShape shape, int block_samples, Rows<const float> attention,
                  bool transposed, Rows<const float> x, Rows<float> y, const SlotStep* steps) {
  using Shared = SharedMatrix<fragments>;
  const int slot = blockIdx.y, nodes = shape.nodes;
  if (rests(steps, slot)) return;
  const int head = static_cast<int>(blockIdx.x) % shape.heads;
  const int first_sample = static_cast<int>(blockIdx.x) / shape.heads * block_samples;
  const int end_sample = min(shape.samples, first_sample + block_samples);
  auto* const shared = reinterpret_cast<float*>(dynamic_shared());
  const auto load = [&](int sample) {
    if (sample < end_sample) {
      Shared::load(shared + sample % buffers * Shared::floats(nodes),
                   head_of(shape, x, slot, sample, head), x.stride * shape.samples, nodes,
                   shape.head_size);
    }
    commit_copies();
  };
  load(first_sample);
  const int lane = threadIdx.x % 32, first = static_cast<int>(threadIdx.x) / 32 * own_nodes;
  const AttentionRows rows(
      attention.data + slot * attention.slot_stride + head * nodes * attention.stride,
      attention.stride, first, nodes, transposed, shape.causal);
  // Where the weights of this warp's nodes are not zero.
  const int begin = shape.causal && transposed ? first : 0;
  const int end = shape.causal && !transposed ? min(nodes, first + own_nodes) : nodes;
#pragma unroll 1
  for (int sample = first_sample; sample < end_sample; ++sample) {
    load(sample + 1);
    wait_copies<1>();
    __syncthreads();
    const float* from =
        shared + sample % buffers * Shared::floats(nodes) + lane % 4 * 2 * Shared::pitch + lane / 4;
    Sums<exact> sums[fragments];
#pragma unroll
    for (int f = 0; f < most_fragments; ++f) {
      if (8 * f < begin || 8 * f >= end) continue;
      float high[4], low[4];
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        high[e] = rows.values[f][e];
        split<exact>(high[e], low[e]);
      }
#pragma unroll
      for (int n = 0; n < fragments; ++n) {
        const float* pair = from + 8 * f * Shared::pitch + 8 * n;
        sums[n].multiply(high, low, pair[0], pair[Shared::pitch]);
      }
    }
    write_nodes(sums, head_of(shape, y, slot, sample, head), y.stride * shape.samples, first, nodes,
                shape.head_size, 1, 1);
    __syncthreads();  // before the next copy into this buffer
  }
}

// Part p of dattention [heads, nodes, stride] goes to parts + p * part_floats.
template <int fragments, bool exact>
__global__ void __launch_bounds__(most_threads, 1)
    attention_weights_gradient_kernel(MixingShape shape, int part_samples, Rows<const float> x,
                                      Rows<const float> dy, Rows<float> parts, int64_t part_floats,
                                      const SlotStep* steps) {
  using Shared = SharedMatrix<fragments>;
  const int slot = blockIdx.y, nodes = shape.nodes;
  if (rests(steps, slot)) return;
  const int head = static_cast<int>(blockIdx.x) % shape.heads;
  const int part = static_cast<int>(blockIdx.x) / shape.heads;
  const int first_sample = part * part_samples;
  const int end_sample = min(shape.samples, first_sample + part_samples);
  auto* const shared = reinterpret_cast<float*>(dynamic_shared());
  const auto buffer = [&](int sample) {
    return shared + sample % buffers * 2 * Shared::floats(nodes);
  };
  const auto load = [&](int sample) {
    if (sample < end_sample) {
      float* to = buffer(sample);
      Shared::load(to, head_of(shape, dy, slot, sample, head), dy.stride * shape.samples, nodes,
                   shape.head_size);
      Shared::load(to + Shared::floats(nodes), head_of(shape, x, slot, sample, head),
                   x.stride * shape.samples, nodes, shape.head_size);
    }
    commit_copies();
  };
  load(first_sample);
  const int lane = threadIdx.x % 32, first = static_cast<int>(threadIdx.x) / 32 * own_nodes;
  const int end = shape.causal ? min(nodes, first + own_nodes) : nodes;
  float sums[most_fragments / 2][2][4] = {}, some[most_fragments / 2][2][4] = {};
#pragma unroll 1
  for (int sample = first_sample; sample < end_sample; ++sample) {
    load(sample + 1);
    wait_copies<1>();
    __syncthreads();
    const LeftOperand<fragments, exact> own(buffer(sample), first);
    const float* other = buffer(sample) + Shared::floats(nodes);
#pragma unroll
    for (int f = 0; f < most_fragments / 2; ++f) {
      if (16 * f >= end) break;
      multiply_nodes(exact ? some[f] : sums[f], own, other, 16 * f);
    }
    if (exact && ((sample + 1) % flush_samples == 0 || sample + 1 == end_sample)) {
#pragma unroll
      for (int i = 0; i < 4 * most_fragments; ++i) {
        float& part_sum = some[i / 8][i / 4 % 2][i % 4];
        sums[i / 8][i / 4 % 2][i % 4] += part_sum;
        part_sum = 0;
      }
    }
    __syncthreads();  // before the next copy into this buffer
  }
  float* to = parts.data + slot * parts.slot_stride + part * part_floats +
              head * nodes * parts.stride + lane % 4 * 2;
#pragma unroll
  for (int f = 0; f < most_fragments; ++f) {
    if (8 * f >= end) break;
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int query = first + lane / 4 + e / 2 * 8, key = 8 * f + lane % 4 * 2 + e % 2;
      if (query < nodes && key < nodes)
        to[query * parts.stride + 8 * f + e % 2] = sums[f / 2][f % 2][e];
    }
  }
}

dim3 block_of(const MixingShape& shape) {
  return dim3(static_cast<unsigned>(ceil_div(shape.nodes, own_nodes) * 32));
}

template <int fragments>
size_t shared_bytes(int nodes, int matrices) {
  return matrices * ceil_div(nodes, 16) * 16 * SharedMatrix<fragments>::pitch * sizeof(float);
}

}  // namespace

bool mixing_fits(int32_t nodes, int32_t head_size) {
  if (nodes > most_nodes || head_size > 64 || head_size % 4 != 0) return false;
  size_t bytes = 0;  // of the gradient, which takes more
  with_fragments(head_size, Precision::fp32, [&](auto fragments, auto) {
    bytes = shared_bytes<decltype(fragments)::value>(nodes, 2 * buffers);
  });
  return bytes <= static_cast<size_t>(device_limits().shared_bytes);
}

void enqueue_mixing(const MixingShape& shape, Rows<const float> attention, bool transposed,
                    Rows<const float> x, Rows<float> y, Precision precision, const SlotStep* steps,
                    cudaStream_t stream) {
  const int64_t block_samples = std::clamp<int64_t>(
      int64_t{1} * shape.slots * shape.heads * shape.samples / wanted_blocks, 1, most_samples);
  with_fragments(shape.head_size, precision, [&](auto fragments, auto exact) {
    constexpr int size = decltype(fragments)::value;
    const auto kernel = mixing_kernel<size, decltype(exact)::value>;
    allow_shared_bytes(kernel, shared_bytes<size>(most_nodes, buffers));
    launch(kernel, blocks(ceil_div(shape.samples, block_samples) * shape.heads, 1, shape.slots),
           block_of(shape), shared_bytes<size>(shape.nodes, buffers), stream, shape,
           static_cast<int>(block_samples), attention, transposed, x, y, steps);
  });
}

void enqueue_attention_weights_gradient(const MixingShape& shape, Rows<const float> x,
                                        Rows<const float> dy, Rows<float> dattention,
                                        Precision precision, const SlotStep* steps,
                                        float* workspace, cudaStream_t stream) {
  const int64_t count = int64_t{1} * shape.heads * shape.nodes * dattention.stride;
  const int64_t fitting = std::clamp<int64_t>(product_workspace / count, 1, most_parts);
  const int64_t part_samples = std::max<int64_t>(least_samples, ceil_div(shape.samples, fitting));
  const int64_t parts = ceil_div(shape.samples, part_samples);
  // A single part needs no workspace.
  const Rows<float> to =
      parts == 1 ? dattention : Rows<float>{workspace, product_workspace, dattention.stride};
  with_fragments(shape.head_size, precision, [&](auto fragments, auto exact) {
    constexpr int size = decltype(fragments)::value;
    const auto kernel = attention_weights_gradient_kernel<size, decltype(exact)::value>;
    allow_shared_bytes(kernel, shared_bytes<size>(most_nodes, 2 * buffers));
    launch(kernel, blocks(parts * shape.heads, 1, shape.slots), block_of(shape),
           shared_bytes<size>(shape.nodes, 2 * buffers), stream, shape,
           static_cast<int>(part_samples), x, dy, to, count, steps);
  });
  if (parts == 1) return;
  enqueue_sum_parts(shape.slots, static_cast<int32_t>(parts), count,
                    {workspace, product_workspace, count}, dattention.data, dattention.slot_stride,
                    false, steps, stream);
}

}  // namespace posattn::cuda
