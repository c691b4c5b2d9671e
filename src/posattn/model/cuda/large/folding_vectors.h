// The part of LargeFolding that is no product of matrices: vectors (c, g, biases, the decoder), and
// the outer products of vectors that gradients of matrices start from.
#pragma once

#include "posattn/model/cuda/large/folding.h"

namespace posattn::cuda {

// c and the decoder; W1x as the first of the maps; of attention from data Wq e + bq. After the
// other maps.
void enqueue_fold_vectors(const LargeFoldingPlan& plan, int slots, const FoldingStep& step);
// g, of attention from data. After the keys.
void enqueue_fold_score_bias(const LargeFoldingPlan& plan, int slots, const FoldingStep& step);

// Before the products, which add to what this writes.
void enqueue_unfold_rows(const LargeFoldingPlan& plan, int slots, const FoldingStep& step);
// After them: biases and what the maps leave of W1x.
void enqueue_unfold_columns(const LargeFoldingPlan& plan, int slots, const FoldingStep& step);

}  // namespace posattn::cuda
