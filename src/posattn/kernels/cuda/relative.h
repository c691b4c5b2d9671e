// Scores by distance (kernels/generic/relative.h), for every slot of a fleet. For .cu files. Slots
// that rest are skipped (`steps` null: none rests).
#pragma once

#include "posattn/kernels/cuda/elementwise_rows.h"
#include "posattn/kernels/generic/relative.h"

namespace posattn::cuda {

// The tables of a layer, head after head: t [heads, distances], u [heads, scratch_size], which may
// be null where no node is scratch.
template <class T>
struct RelativeTables {
  T *distances = nullptr, *scratch = nullptr;
  int64_t slot_stride = 0;
};

// scores [heads, nodes, nodes], a row of scores each row.
void enqueue_relative_scores(int slots, int heads, const generic::RelativeShape& shape,
                             RelativeTables<const float> tables, Rows<float> scores,
                             const SlotStep* steps, cudaStream_t stream);
// tables = sums of the scores' gradients that each of their numbers is read by, in one order.
void enqueue_relative_scores_gradient(int slots, int heads, const generic::RelativeShape& shape,
                                      Rows<const float> dscores, RelativeTables<float> dtables,
                                      const SlotStep* steps, cudaStream_t stream);

}  // namespace posattn::cuda
