// The folded decoder with the loss: y = w . r + b for every row r of the last layer's activations,
// and the gradient back to its pre-activations.
#include "posattn/kernels/cuda/runtime.h"
#include "posattn/model/cuda/medium/layer.h"

namespace posattn::cuda::medium {
namespace {

constexpr int warps = 16;
constexpr int lane_columns = columns / 32;  // a lane has columns lane and lane + 32 of a row
constexpr int ahead = 4;                    // rows that a warp reads before it works on them

// A warp takes a row of a group at a time; blocks are (group, slot). All sums are in fp32.
__global__ void __launch_bounds__(32 * warps)
    medium_decoder_kernel(Layer layer, StepData data, int64_t weight_place, int64_t bias_place,
                          double* losses) {
  __shared__ float weight_sums[warps][columns];
  __shared__ float bias_sums[warps];
  __shared__ double loss_sums[warps];
  const int group = blockIdx.x, groups = gridDim.x, slot = blockIdx.y;
  const int lane = threadIdx.x, warp = threadIdx.y, nodes = layer.nodes;
  const SlotStep step = layer.steps[slot];
  if (step.samples == 0) return;
  const int first_sample = static_cast<int>(int64_t{1} * layer.samples * group / groups);
  const int last_sample = static_cast<int>(int64_t{1} * layer.samples * (group + 1) / groups);
  const int first_row = first_sample * nodes, last_row = last_sample * nodes;

  const float* folded = layer.folded + slot * layer.folded_size;
  const float bias = folded[bias_place];
  float weight[lane_columns], dweight[lane_columns] = {};
#pragma unroll
  for (int k = 0; k < lane_columns; ++k) weight[k] = folded[weight_place + lane + 32 * k];
  float* rows = layer.output + int64_t{1} * slot * layer.samples * nodes * columns;
  const int64_t outputs = int64_t{1} * slot * nodes;  // of counted; targets have samples of them
  float dbias = 0;
  double loss = 0;
  for (int begin = first_row + warp; begin < last_row; begin += ahead * warps) {
    float r[ahead][lane_columns], target[ahead];
    bool counts[ahead];
#pragma unroll
    for (int i = 0; i < ahead; ++i) {
      const int row = begin + i * warps, sample = row / nodes, node = row % nodes;
      counts[i] = row < last_row && sample < step.samples && node < step.real_nodes &&
                  data.counted[outputs + node] != 0;
      target[i] = counts[i] ? data.targets[(outputs + node) * layer.samples + sample] : 0.0f;
#pragma unroll
      for (int k = 0; k < lane_columns; ++k) {
        r[i][k] = counts[i] ? rows[int64_t{1} * row * columns + lane + 32 * k] : 0.0f;
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
        dweight[k] += dy * r[i][k];
        rows[int64_t{1} * row * columns + lane + 32 * k] = r[i][k] > 0 ? dy * weight[k] : 0.0f;
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
  float* partial = layer.partials + (int64_t{1} * slot * groups + group) * layer.folded_size;
  const int thread = 32 * warp + lane;
  if (thread < columns) {
    float sum = 0;
    for (int i = 0; i < warps; ++i) sum += weight_sums[i][thread];
    partial[weight_place + thread] = sum;
  }
  if (thread == 0) {
    float sum = 0;
    double total = 0;
    for (int i = 0; i < warps; ++i) {
      sum += bias_sums[i];
      total += loss_sums[i];
    }
    partial[bias_place] = sum;
    losses[int64_t{1} * slot * groups + group] = total;
  }
}

}  // namespace

void enqueue_decoder(const Layer& last, const StepData& data, const FoldedLayout& layout,
                     double* losses, Precision precision, cudaStream_t stream) {
  launch(medium_decoder_kernel, dim3(groups(last, precision), last.slots), dim3(32, warps), 0,
         stream, last, data, layout.decoder(), layout.decoder_bias(), losses);
}

}  // namespace posattn::cuda::medium
