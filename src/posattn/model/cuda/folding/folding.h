// Folding on the device: weights -> folded weights before a step, gradients of the folded weights
// -> gradients of the weights after it. The algebra is that of model/engine/folded_stage.h; where
// the folded weights lie, FoldedLayout says. Attention from positions, which does not depend on the
// data, is part of the folding: A lies among the folded weights, dA among their gradients.
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
  const float* parameters = nullptr;        // [slots, ParameterLayout(spec).buffer_size()]
  float* folded = nullptr;                  // [slots, FoldedLayout::size()]
  const float* folded_gradients = nullptr;  // the same shape, summed over groups
  float* gradients = nullptr;               // the shape of the parameters
  float* workspace = nullptr;               // [slots, product_workspace], for the medium engine
  cudaStream_t stream = nullptr;
};

class Folding {
 public:
  // `positions` is P by formula [nodes, encoding_size], or null.
  Folding(const FleetShape& shape, const float* positions);

  // True for widths of 64, two maps in the MLP, one data and one output column, at most 16 nodes,
  // and attention from positions or from data; no RoPE, no learned encoding.
  static bool supports(const ModelSpec& spec);
  // How much device memory a Folding for this shape takes.
  static int64_t bytes(const FleetShape& shape);
  // Shared memory that a block takes at most.
  static int64_t shared_bytes(const ModelSpec& spec);

  void enqueue_fold(const FoldingStep& step, const PackedMaps& packed = {});
  // Overwrites the gradient of every trained tensor. Reads what the last fold kept: it must have
  // seen the same parameters.
  void enqueue_unfold(const FoldingStep& step);

 private:
  int slots_;
  DeviceBuffer<float> kept_;  // products of weights that the unfold needs again
  FoldingPlan plan_;
};

// What an engine's blocks leave of the loss, before loss_scale.
struct TileLosses {
  const double* parts = nullptr;  // [slots, count]
  int count = 0;
  double* out = nullptr;  // [slots]
};

// out[slot] = the sum of partials[slot, 0 .. count - 1]: first within each run of `group` of them,
// then over the groups, both in order. A block that adds up a whole group itself (group = 1 here)
// and blocks that take a tile each give the same bits. For slots that do not rest; partials
// [slots, count, size], out [slots, size], size a multiple of four. Adds
// up losses as well, where given.
void enqueue_sum_groups(const SlotStep* slots, int slot_count, const float* partials, float* out,
                        int count, int group, int64_t size, cudaStream_t stream,
                        const TileLosses& losses = {});

}  // namespace posattn::cuda
