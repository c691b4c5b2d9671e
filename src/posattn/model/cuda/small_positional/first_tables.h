// Layer 0 of models with positions in their input, s_i = [v_i | P_i]: what depends on P is a
// constant of each node,
//   c_i = c + M_0(:, 1..) P_i + sum_h sum_j A_h(i, j) M_h(:, 1..) P_j,
// made once a step. Of its gradient D_i the kernels leave sums over samples, from which those of M,
// c and A follow at the end of the step.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "posattn/model/cuda/small_positional/layer.h"

namespace posattn::cuda::positional {

struct PositionsInInput {
  const SlotStep* steps;
  const float* folded;  // [slots, folded_size], and its gradients in the same places
  int64_t folded_size;
  LayerPlaces places;
  Positions positions;
  int slots, nodes, encoding_size;
};

// Numbers of a slot: a [3, 64], then c_i [9, 64]. Gradients lie so where those of M belong, until
// they are finished; there is room from this encoding size on.
constexpr int first_table_size = (3 + kernel_nodes) * 64;
constexpr int fewest_positions = kernel_nodes / 3;

void enqueue_make_first_tables(const PositionsInInput& input, float* tables, cudaStream_t stream);
void enqueue_finish_first_tables(const PositionsInInput& input, float* folded_gradients,
                                 cudaStream_t stream);

}  // namespace posattn::cuda::positional
