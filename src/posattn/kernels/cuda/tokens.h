// Tables of tokens, for every slot of a fleet. For .cu files. tokens [slots, rows], negative where
// a row has none. Slots that rest are skipped (`steps` null: none rests).
#pragma once

#include "posattn/kernels/cuda/elementwise_rows.h"

namespace posattn::cuda {

// What the rows of tokens do to y. A row without a token becomes zero where there is nothing else
// in y, and stays otherwise.
enum class Embedding : int32_t { alone, replacing, added };

// y: row r is, or has added, row tokens[r] of the table.
void enqueue_embed(int slots, int64_t rows, int32_t columns, const int32_t* tokens,
                   Rows<const float> table, Embedding how, Rows<float> y, const SlotStep* steps,
                   cudaStream_t stream);

// dtable [vocabulary, columns] = or += the sums of the rows of dy with each token, in one order.
// workspace [slots, product_workspace].
void enqueue_embed_gradient(int slots, int64_t rows, int32_t columns, int32_t vocabulary,
                            const int32_t* tokens, Rows<const float> dy, Rows<float> dtable,
                            bool accumulate, const SlotStep* steps, float* workspace,
                            cudaStream_t stream);

// Rows with a token become zero.
void enqueue_clear_embedded(int slots, int64_t rows, int32_t columns, const int32_t* tokens,
                            Rows<float> y, const SlotStep* steps, cudaStream_t stream);

}  // namespace posattn::cuda
