#include "posattn/kernels/cuda/primitives.cuh"
#include "posattn/kernels/cuda/runtime.h"
#include "posattn/model/cuda/large/decoder.h"

namespace posattn::cuda {
namespace {

constexpr int warps = 16;
constexpr int lane_columns = 4;  // columns lane, lane + 32, ... of a row: up to 128
constexpr int ahead = 4;         // rows that a warp reads before it works on them

// Rows of a group, one warp each; blocks are (group, slot). With tf32 the layers' rows are rounded
// but hold bits that do not count (zero has some, too), and the errors are rounded for the layers.
template <bool exact>
__global__ void __launch_bounds__(32 * warps) large_decoder_kernel(LargeDecoder d) {
  __shared__ float weight_sums[warps][32 * lane_columns];
  __shared__ float bias_sums[warps];
  __shared__ double loss_sums[warps];
  const int group = blockIdx.x, slot = blockIdx.y, lane = threadIdx.x, warp = threadIdx.y;
  const SlotStep step = d.data.slots[slot];
  if (step.samples == 0) return;
  const int first_sample = static_cast<int>(int64_t{1} * d.samples * group / d.groups);
  const int last_sample = static_cast<int>(int64_t{1} * d.samples * (group + 1) / d.groups);
  const int first_row = first_sample * d.nodes, last_row = last_sample * d.nodes;

  const float* folded = d.folded + slot * d.folded_size;
  const float bias = folded[d.bias];
  float weight[lane_columns], dweight[lane_columns] = {};
#pragma unroll
  for (int k = 0; k < lane_columns; ++k) {
    const int column = lane + 32 * k;
    weight[k] = column < d.hidden ? folded[d.weight + column] : 0.0f;
  }
  float* rows = d.rows + int64_t{1} * slot * d.samples * d.nodes * d.hidden;
  const int64_t outputs = int64_t{1} * slot * d.nodes;  // of counted; targets have samples of them
  float dbias = 0;
  double loss = 0;
  for (int begin = first_row + warp; begin < last_row; begin += ahead * warps) {
    float r[ahead][lane_columns], target[ahead];
    bool counts[ahead];
#pragma unroll
    for (int i = 0; i < ahead; ++i) {
      const int row = begin + i * warps, sample = row / d.nodes, node = row % d.nodes;
      counts[i] = row < last_row && sample < step.samples && node < step.real_nodes &&
                  d.data.counted[outputs + node] != 0;
      target[i] = counts[i] ? d.data.targets[(outputs + node) * d.samples + sample] : 0.0f;
#pragma unroll
      for (int k = 0; k < lane_columns; ++k) {
        const int column = lane + 32 * k;
        const float value =
            counts[i] && column < d.hidden ? rows[int64_t{1} * row * d.hidden + column] : 0.0f;
        r[i][k] = exact ? value : tf32_part(value);
      }
    }
#pragma unroll
    for (int i = 0; i < ahead; ++i) {
      const int row = begin + i * warps;
      if (row >= last_row) break;
      float dy = 0;
      if (counts[i]) {  // the same in all lanes
        float y = 0;
#pragma unroll
        for (int k = 0; k < lane_columns; ++k) y += weight[k] * r[i][k];
        for (int other = 16; other > 0; other /= 2) y += __shfl_xor_sync(0xffffffffu, y, other);
        const float error = y + bias - target[i];
        loss += double{error} * error;
        dy = 2 * step.loss_scale * error;
        dbias += dy;
      }
#pragma unroll
      for (int k = 0; k < lane_columns; ++k) {
        const int column = lane + 32 * k;
        if (column >= d.hidden) break;
        dweight[k] += dy * r[i][k];
        const float du = exact ? dy * weight[k] : round_to_tf32(dy * weight[k]);
        rows[int64_t{1} * row * d.hidden + column] = r[i][k] > 0 ? du : 0.0f;
      }
    }
  }

#pragma unroll
  for (int k = 0; k < lane_columns; ++k) weight_sums[warp][lane + 32 * k] = dweight[k];
  if (lane == 0) {
    bias_sums[warp] = dbias;
    loss_sums[warp] = loss;
  }
  __syncthreads();
  float* partial = d.partials + (int64_t{1} * slot * d.groups + group) * d.folded_size;
  const int thread = 32 * warp + lane;
  if (thread < d.hidden) {
    float sum = 0;
    for (int i = 0; i < warps; ++i) sum += weight_sums[i][thread];
    partial[d.weight + thread] = sum;
  }
  if (thread == 0) {
    float sum = 0;
    double total = 0;
    for (int i = 0; i < warps; ++i) {
      sum += bias_sums[i];
      total += loss_sums[i];
    }
    partial[d.bias] = sum;
    d.losses[int64_t{1} * slot * d.groups + group] = total;
  }
}

}  // namespace

void enqueue_large_decoder(const LargeDecoder& decoder, Precision precision, cudaStream_t stream) {
  launch(precision == Precision::fp32 ? large_decoder_kernel<true> : large_decoder_kernel<false>,
         dim3(decoder.groups, decoder.slots), dim3(32, warps), 0, stream, decoder);
}

}  // namespace posattn::cuda
