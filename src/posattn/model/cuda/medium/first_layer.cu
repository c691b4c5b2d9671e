// Layer 0: one column x, so u = x m_0 + (A_1 x) m_1 + (A_2 x) m_2 + c, and with w_h = du m_h
//   dm_0 = du^T x,   dm_h = du^T (A_h x),   dc = column sums of du,   dA_h = w_h x^T.
// A warp has a row at a time, a lane two of its columns.
#include "posattn/kernels/cuda/primitives.cuh"
#include "posattn/kernels/cuda/runtime.h"
#include "posattn/model/cuda/medium/layer.h"

namespace posattn::cuda::medium {
namespace {

constexpr int warps = 8, threads = 32 * warps;
constexpr int chunk = 16;               // samples that shared memory holds
constexpr int node_stride = chunk + 1;  // floats of a node
constexpr int row_batch = 4;            // rows that a warp works on at once

// Keeps a chunk of samples: x, and A_h x, [1 + heads][nodes][node_stride].
struct Chunk {
  float* mixed;
  int nodes;

  __device__ float& at(int map, int node, int sample) const {
    return mixed[(map * nodes + node) * node_stride + sample];
  }
  // Absent samples are zeros. Ends with a barrier.
  __device__ void load(const Layer& layer, const float* attention, int slot, int first, int count) {
    const float* inputs = layer.inputs + int64_t{slot} * nodes * layer.samples + first;
    const int sample = static_cast<int>(threadIdx.x) % chunk;
    constexpr int step = threads / chunk;
    for (int node = static_cast<int>(threadIdx.x) / chunk; node < nodes; node += step) {
      at(0, node, sample) = sample < count ? inputs[int64_t{node} * layer.samples + sample] : 0;
    }
    __syncthreads();
    for (int row = static_cast<int>(threadIdx.x) / chunk; row < heads * nodes; row += step) {
      const float* coefficients = attention + row * nodes;
      float sum = 0;
#pragma unroll 8
      for (int j = 0; j < nodes; ++j) sum += coefficients[j] * at(0, j, sample);
      at(1, row, sample) = sum;  // the second head's rows follow the first's
    }
    __syncthreads();
  }
};

// Holds a lane's columns of the weights.
struct LaneMaps {
  float2 m[1 + heads], constant;

  __device__ LaneMaps(const Layer& layer, const float* folded, int lane) {
    const auto pair = [&](int64_t place) {
      return *reinterpret_cast<const float2*>(folded + place + 2 * lane);
    };
#pragma unroll
    for (int map = 0; map <= heads; ++map) m[map] = pair(layer.maps + map * columns);
    constant = pair(layer.constant);
  }
};

// Blocks are (chunk, slot).
__global__ void __launch_bounds__(threads) medium_first_forward_kernel(Layer layer) {
  const int slot = static_cast<int>(blockIdx.y), nodes = layer.nodes;
  const int first = static_cast<int>(blockIdx.x) * chunk;
  const int left = layer.steps[slot].samples - first;
  if (left <= 0) return;
  const int count = left < chunk ? left : chunk;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const float* folded = layer.folded + slot * layer.folded_size;
  Chunk data = {reinterpret_cast<float*>(dynamic_shared()), nodes};
  const LaneMaps maps(layer, folded, lane);
  data.load(layer, folded + layer.attention, slot, first, count);
  float* output = layer.output + (int64_t{slot} * layer.samples + first) * nodes * columns;
  for (int sample = 0; sample < count; ++sample) {
    for (int node = warp; node < nodes; node += warps) {
      float2 u = maps.constant;
#pragma unroll
      for (int map = 0; map <= heads; ++map) {
        const float x = data.at(map, node, sample);
        u.x += x * maps.m[map].x;
        u.y += x * maps.m[map].y;
      }
      // A NaN stays.
      *reinterpret_cast<float2*>(output + (sample * nodes + node) * columns + 2 * lane) =
          make_float2(u.x <= 0 ? 0 : u.x, u.y <= 0 ? 0 : u.y);
    }
  }
}

// Two sums over a warp at the price of six shuffles; the first is whole in even lanes, the second
// in odd ones.
__device__ inline float two_sums(float first, float second, int lane) {
  const bool odd = (lane & 1) != 0;
  const float other = __shfl_xor_sync(0xffffffffu, odd ? first : second, 1);
  float sum = (odd ? second : first) + other;
#pragma unroll
  for (int distance = 2; distance < 32; distance *= 2) {
    sum += __shfl_xor_sync(0xffffffffu, sum, distance);
  }
  return sum;
}

// Blocks are (group, slot).
__global__ void __launch_bounds__(threads) medium_first_backward_kernel(Layer layer, int group) {
  __shared__ float2 sums[warps][2 + heads][32];
  const int slot = static_cast<int>(blockIdx.y), nodes = layer.nodes;
  const int present = layer.steps[slot].samples;
  if (present == 0) return;
  float* gradients = layer.partials + (int64_t{slot} * gridDim.x + blockIdx.x) * layer.folded_size;
  const int begin = static_cast<int>(blockIdx.x) * group;
  const int end = present < begin + group ? present : begin + group;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const float* folded = layer.folded + slot * layer.folded_size;
  Chunk data = {reinterpret_cast<float*>(dynamic_shared()), nodes};
  float* weighted = data.mixed + (1 + heads) * nodes * node_stride;  // w [heads][nodes][samples]
  const LaneMaps maps(layer, folded, lane);
  const auto thread = static_cast<int>(threadIdx.x);
  float* dattention = gradients + layer.attention;
  for (int at = thread; at < heads * nodes * nodes; at += threads) dattention[at] = 0;
  float2 dm[2 + heads] = {};  // of m_0, m_1, m_2 and c
  for (int first = begin; first < end; first += chunk) {
    const int count = end - first < chunk ? end - first : chunk;
    __syncthreads();  // the chunk before is read no more
    data.load(layer, folded + layer.attention, slot, first, count);
    const float* errors = layer.errors + (int64_t{slot} * layer.samples + first) * nodes * columns;
    const int rows = count * nodes;
    for (int begin_row = warp; begin_row < rows; begin_row += row_batch * warps) {
      float2 du[row_batch];
#pragma unroll
      for (int i = 0; i < row_batch; ++i) {
        const int row = begin_row + i * warps;
        du[i] = row < rows ? *reinterpret_cast<const float2*>(errors + row * columns + 2 * lane)
                           : make_float2(0, 0);
      }
#pragma unroll
      for (int i = 0; i < row_batch; ++i) {
        const int row = begin_row + i * warps;
        if (row >= rows) break;
        const int sample = row / nodes, node = row - sample * nodes;
#pragma unroll
        for (int map = 0; map <= heads; ++map) {
          const float x = data.at(map, node, sample);
          dm[map].x += x * du[i].x;
          dm[map].y += x * du[i].y;
        }
        dm[1 + heads].x += du[i].x;
        dm[1 + heads].y += du[i].y;
        const float w = two_sums(du[i].x * maps.m[1].x + du[i].y * maps.m[1].y,
                                 du[i].x * maps.m[2].x + du[i].y * maps.m[2].y, lane);
        if (lane < heads) weighted[(lane * nodes + node) * node_stride + sample] = w;
      }
    }
    __syncthreads();
    // A thread has the same coefficients in every chunk.
    for (int at = thread; at < heads * nodes * nodes; at += threads) {
      const int row = at / nodes, key = at - row * nodes;
      float sum = 0;
      for (int sample = 0; sample < count; ++sample) {
        sum += weighted[row * node_stride + sample] * data.at(0, key, sample);
      }
      dattention[at] += sum;
    }
  }
#pragma unroll
  for (int which = 0; which < 2 + heads; ++which) sums[warp][which][lane] = dm[which];
  __syncthreads();
  if (warp >= 2 + heads) return;
  float2 sum = make_float2(0, 0);
  for (int other = 0; other < warps; ++other) {
    sum.x += sums[other][warp][lane].x;
    sum.y += sums[other][warp][lane].y;
  }
  float* to = gradients + (warp <= heads ? layer.maps + warp * columns : layer.constant);
  *reinterpret_cast<float2*>(to + 2 * lane) = sum;
}

size_t chunk_bytes(int nodes, int arrays) { return sizeof(float) * arrays * nodes * node_stride; }

}  // namespace

void enqueue_first_forward(const Layer& layer, cudaStream_t stream) {
  launch(medium_first_forward_kernel,
         dim3(static_cast<unsigned>(ceil_div(layer.samples, chunk)), layer.slots), dim3(threads),
         chunk_bytes(layer.nodes, 1 + heads), stream, layer);
}

void enqueue_first_backward(const Layer& layer, Precision precision, cudaStream_t stream) {
  launch(medium_first_backward_kernel, dim3(groups(layer, precision), layer.slots), dim3(threads),
         chunk_bytes(layer.nodes, 1 + 2 * heads), stream, layer, group_samples(layer, precision));
}

}  // namespace posattn::cuda::medium
