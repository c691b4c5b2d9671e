// The host side that all fused engines share: buffers for folded weights, their gradients and the
// parts of sums that blocks leave, and the order of a step:
//   fold, layers forward and backward, sums over the parts, unfold.
// For .cu files.
#pragma once

#include "posattn/kernels/cuda/runtime.h"
#include "posattn/model/cuda/folding/folding.h"

namespace posattn::cuda {

// What the blocks of a slot leave, which enqueue_sum_groups adds up.
struct PartialSums {
  int64_t parts = 0;   // of gradients, [parts, FoldedLayout::size()]
  int group = 1;       // so many parts are added first
  int64_t losses = 0;  // of squared errors
};

class FoldedEngine : public StepEngine {
 public:
  void enqueue(const StepData& data, const float* parameters, float* gradients, double* losses,
               cudaStream_t stream) final;
  // How much device memory its buffers take.
  static int64_t buffer_bytes(const FleetShape& shape, const FoldedLayout& layout,
                              const PartialSums& sums, int64_t workspace = 0);

 protected:
  // Floats that are free while weights are folded and unfolded (`workspace`) share the memory of
  // the partial gradients.
  FoldedEngine(const FleetShape& shape, const FoldedLayout& layout, const PartialSums& sums,
               int64_t workspace = 0);
  virtual void fold(const FoldingStep& step) = 0;
  // Fills partials_ and losses_.
  virtual void enqueue_layers(const StepData& data, const float* parameters,
                              cudaStream_t stream) = 0;
  // Completes the sums of gradients and losses where an engine keeps some in another form.
  virtual void finish_sums(const StepData& /*data*/, const float* /*parameters*/,
                           double* /*losses*/, cudaStream_t /*stream*/) {}
  virtual void unfold(const FoldingStep& step) = 0;

  Positions positions(const float* parameters) const;

  const FleetShape shape_;
  const FoldedLayout layout_;
  const FoldedTensors tensors_;
  const PartialSums sums_;
  DeviceBuffer<float> positions_;                  // P, where it is a formula
  DeviceBuffer<float> folded_, folded_gradients_;  // [slots, FoldedLayout::size()]
  DeviceBuffer<float> partials_;                   // [slots, parts, FoldedLayout::size()]
  DeviceBuffer<double> losses_;                    // [slots, losses]
};

// The multiprocessors of the device in use, by which engines cut their work.
int64_t multiprocessors();

// How many of a slot's `tiles` a block takes, at most 32, so that the last round of blocks leaves
// few multiprocessors idle; a block's start costs `start` half tiles.
int tiles_of_block(int64_t tiles, int64_t slots, int64_t processors, int start);

}  // namespace posattn::cuda
