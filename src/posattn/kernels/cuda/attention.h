// Attention from data in one kernel for each direction, for every slot of a fleet: scores, mask,
// softmax and mixing of a sample's head stay in registers and shared memory, and the gradient
// computes them again. For .cu files. Slots that rest are skipped.
#pragma once

#include "posattn/kernels/cuda/elementwise_rows.h"

namespace posattn::cuda {

// Rows are (node, sample), node-major. Head h has its queries in columns 2 h key_size .., its keys
// behind them, and its values in columns 2 heads key_size + h head_size .. of one matrix.
struct AttentionShape {
  int slots = 1;
  int32_t nodes = 0, samples = 0, heads = 0, key_size = 0, head_size = 0;
  AttendedColumns attended;  // causal_nodes: 0, or all nodes

  int64_t rows() const { return int64_t{1} * nodes * samples; }
  int32_t columns() const { return heads * (2 * key_size + head_size); }
};

// Whether sizes are small enough for the card, and sizes and strides multiples of four.
bool attention_fits(int32_t nodes, int32_t heads, int32_t key_size, int32_t head_size);

// mixed [rows, heads head_size] = softmax(Q K^T / sqrt(key_size)) V. `totals` [rows, heads]: the
// logarithm of the sum of each row's exponentials, for the gradient.
void enqueue_attention(const AttentionShape& shape, Rows<const float> source, Rows<float> mixed,
                       Rows<float> totals, Precision precision, const SlotStep* steps,
                       cudaStream_t stream);

// Makes the gradient of every column of the source from dmixed.
void enqueue_attention_gradient(const AttentionShape& shape, Rows<const float> source,
                                Rows<const float> mixed, Rows<const float> totals,
                                Rows<const float> dmixed, Rows<float> dsource, Precision precision,
                                const SlotStep* steps, cudaStream_t stream);

}  // namespace posattn::cuda
