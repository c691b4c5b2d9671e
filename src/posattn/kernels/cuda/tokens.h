// Tables of tokens, for every slot of a fleet. For .cu files. tokens [slots, rows], negative where
// a row has none. Slots that rest are skipped (`steps` null: none rests).
#pragma once

#include "posattn/kernels/cuda/elementwise_rows.h"

namespace posattn::cuda {

// y: row r is row tokens[r] of the table. A row without a token stays with `keep`, else it becomes
// zero.
void enqueue_embed(int slots, int64_t rows, int32_t columns, const int32_t* tokens,
                   Rows<const float> table, bool keep, Rows<float> y, const SlotStep* steps,
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
