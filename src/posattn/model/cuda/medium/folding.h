// Folding for the engine of layer.h, which says what is folded: weights -> folded weights before a
// step, gradients of the folded weights -> gradients of the weights after it, one launch each, in
// fp32. Places are FoldedLayout's, whose maps of a later layer are M, V and P here. Attention from
// positions is PositionalAttention's (positional_attention.h).
#pragma once

#include "posattn/kernels/cuda/runtime.h"
#include "posattn/model/cuda/folding/folding.h"

namespace posattn::cuda::medium {

struct Tensors : FoldedTensors {
  Tensors(const ModelSpec& spec, const FoldedLayout& layout, const float* identity);

  int64_t kept_stride;  // of a layer
  int64_t entry_place;
  int input_columns;  // of the encoder
  // Where x is formed, layer 0 has E = I and e = 0, which lie here; null otherwise.
  const float* unit;
};

class Folding {
 public:
  Folding(const FleetShape& shape, const FoldedLayout& layout, const float* positions);
  static int64_t bytes(const FleetShape& shape, const FoldedLayout& layout);

  void enqueue_fold(const FoldingStep& step);
  // Overwrites the gradient of every tensor but those of attention from positions. Reads what the
  // last fold kept: it must have seen the same parameters.
  void enqueue_unfold(const FoldingStep& step);

 private:
  int slots_;
  DeviceBuffer<float> unit_;
  Tensors tensors_;
  const float* positions_;    // P by formula
  DeviceBuffer<float> kept_;  // [slots, depth, kept_floats]
};

// The scores of attention from data (score_folding.cu). Before the rest is unfolded.
void allow_score_folding();
void enqueue_fold_scores(const Tensors& tensors, int slots, const FoldingStep& step, float* kept);
void enqueue_unfold_scores(const Tensors& tensors, int slots, const FoldingStep& step, float* kept);

// a and b of x = value a + b_i where it is formed, with P (null: each slot's own, or none), and the
// encoder's gradient (entry.cu).
void enqueue_fold_entry(const Tensors& tensors, int slots, const FoldingStep& step,
                        const float* positions);
void enqueue_unfold_entry(const Tensors& tensors, int slots, const FoldingStep& step,
                          const float* positions);

}  // namespace posattn::cuda::medium
