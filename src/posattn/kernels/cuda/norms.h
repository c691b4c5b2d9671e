// Vectors brought to a norm, y = norm x / |x|, and 0 where x = 0, for every slot of a fleet. There
// is no epsilon: y is the same for x and c x. For .cu files. Slots that rest are skipped.
#pragma once

#include "posattn/kernels/cuda/normalisation.h"

namespace posattn::cuda {

// Rows hold `heads` pairs of a query and a key of `size` numbers each.
struct KeyShape {
  int slots = 1;
  int64_t rows = 0;
  int32_t heads = 0, size = 0;
};
// In place: the norm of head h's query becomes exp(log_scale[h]), that of its key 1. inverse [rows,
// 2 heads]: 1 / |x| as it was.
void enqueue_unit_keys(const KeyShape& shape, SlotVector log_scale, Rows<float> query_key,
                       Rows<float> inverse, const SlotStep* steps, cudaStream_t stream);
// d becomes the gradient of what was given; along [rows, heads] = <d, y> of each query, whose sum
// is the gradient of log_scale.
void enqueue_unit_keys_gradient(const KeyShape& shape, SlotVector log_scale,
                                Rows<const float> query_key, Rows<const float> inverse,
                                Rows<float> d, Rows<float> along, const SlotStep* steps,
                                cudaStream_t stream);

// Rows are (node, sample), node-major. A part is a row, or all rows of a sample; its norm becomes
// the square root of how many numbers it has. Nodes steps[slot].real_nodes .. absent_end - 1 are
// absent.
struct PartShape {
  int slots = 1;
  int32_t nodes = 0, samples = 0, width = 0, absent_end = 0;
  bool by_sample = false;
};
void enqueue_scale_parts(const PartShape& shape, Rows<const float> x, Rows<float> y,
                         Rows<float> inverse, const SlotStep* steps, cudaStream_t stream);
// dx = or += from y and dy.
void enqueue_scale_parts_gradient(const PartShape& shape, Rows<const float> y,
                                  Rows<const float> inverse, Rows<const float> dy, Rows<float> dx,
                                  bool accumulate, const SlotStep* steps, cudaStream_t stream);
// y *= |x| / norm by part, 0 where x = 0: what divided x by its size is undone. y [rows, columns].
void enqueue_multiply_back(const PartShape& shape, Rows<const float> inverse, int32_t columns,
                           Rows<float> y, const SlotStep* steps, cudaStream_t stream);

}  // namespace posattn::cuda
