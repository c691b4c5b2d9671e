// Folding for models of any size, by batched products over slots, layers and heads: weights ->
// folded weights before a step, gradients of the folded weights -> gradients of the weights after
// it. Algebra: model/engine/folded_stage.h; places: FoldedLayout. Attention from positions is
// LargePositionalAttention's.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "posattn/kernels/cuda/runtime.h"
#include "posattn/model/cuda/folding/plan.h"
#include "posattn/model/cuda/step/step_engine.h"

namespace posattn::cuda {

// What a step folds, and where to. Slots that rest are not touched.
struct FoldingStep {
  const SlotStep* slots = nullptr;
  const float* parameters = nullptr;        // [slots, parameter_stride]
  float* folded = nullptr;                  // [slots, folded_size]
  const float* folded_gradients = nullptr;  // the same shape
  float* gradients = nullptr;               // the shape of the parameters
  float* workspace = nullptr;               // [slots, product_workspace]
  cudaStream_t stream = nullptr;
};

// Where a slot keeps products of weights and their gradients, per layer. FoldedTensors' names.
struct LargeFoldingPlan : FoldedTensors {
  explicit LargeFoldingPlan(const ModelSpec& spec);

  __host__ __device__ float* kept_layer(int slot, int layer) const {
    return kept + (int64_t{1} * slot * depth + layer) * kept_stride;
  }

  int width;
  float score_scale;        // 1 / sqrt(d_k)
  int64_t values, dvalues;  // W1o Wo [hidden, width] and its gradient
  int64_t maps, dmaps;      // [1 + H][hidden, width]: W1x, then the B_h
  // Attention from data: Wq E, Wk E of each head [2 H width, columns]; Wq e + bq [H width]
  int64_t sides, dsides, query_bias, dquery_bias;
  int64_t kept_stride;    // of a layer
  float* kept = nullptr;  // [slots, depth, kept_stride]
};

class LargeFolding {
 public:
  explicit LargeFolding(const FleetShape& shape);
  static int64_t bytes(const FleetShape& shape);

  void enqueue_fold(const FoldingStep& step);
  // Overwrites the gradient of every tensor but those of attention from positions. Reads what the
  // last fold kept: it must have seen the same parameters.
  void enqueue_unfold(const FoldingStep& step);

 private:
  int slots_;
  LargeFoldingPlan plan_;
  DeviceBuffer<float> kept_;
};

}  // namespace posattn::cuda
