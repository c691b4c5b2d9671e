// Folding for the engine of layer.h, which says what is folded: weights -> folded weights before a
// step, gradients of the folded weights -> gradients of the weights after it, one launch each, in
// fp32. Places are FoldedLayout's, whose maps of a later layer are M, V and P here. Attention from
// positions is LargePositionalAttention's.
#pragma once

#include "posattn/kernels/cuda/runtime.h"
#include "posattn/model/cuda/large/folding.h"

namespace posattn::cuda::medium {

struct Tensors : FoldedTensors {
  Tensors(const ModelSpec& spec, const FoldedLayout& layout, const float* identity);

  int64_t kept_stride;  // of a layer
  int64_t entry_place;
  int input_columns;  // of the encoder
  bool folds_scores;  // of attention from data: into G
  // Otherwise sides (side_tile.cuh): columns, those of the model, and of what they are made of.
  int side_columns, key_size, source_size;
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

// Scores that do not fold (side_folding.cu). After the rest is unfolded, since E has more to come.
void enqueue_fold_sides(const Tensors& tensors, int slots, const FoldingStep& step, float* kept,
                        const float* positions);
void enqueue_unfold_sides(const Tensors& tensors, int slots, const FoldingStep& step, float* kept,
                          const float* positions);

// a and b of x = value a + b_i where it is formed, with P (null: each slot's own, or none), and the
// encoder's gradient (entry.cu).
void enqueue_fold_entry(const Tensors& tensors, int slots, const FoldingStep& step,
                        const float* positions);
void enqueue_unfold_entry(const Tensors& tensors, int slots, const FoldingStep& step,
                          const float* positions);

}  // namespace posattn::cuda::medium
