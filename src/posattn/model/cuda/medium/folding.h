// Folding for the engine of layer.h, which says what is folded: weights -> folded weights before a
// step, gradients of the folded weights -> gradients of the weights after it, one launch each, in
// fp32. Places are FoldedLayout's, whose maps of a later layer are M, V and P here. Attention from
// positions is LargePositionalAttention's.
#pragma once

#include "posattn/kernels/cuda/runtime.h"
#include "posattn/model/cuda/large/folding.h"

namespace posattn::cuda::medium {

class Folding {
 public:
  explicit Folding(const FleetShape& shape);
  static int64_t bytes(const FleetShape& shape);

  void enqueue_fold(const FoldingStep& step);
  // Overwrites the gradient of every tensor but those of attention from positions. Reads what the
  // last fold kept: it must have seen the same parameters.
  void enqueue_unfold(const FoldingStep& step);

 private:
  int slots_;
  FoldedTensors tensors_;
  DeviceBuffer<float> kept_;  // [slots, depth, kept_floats]
};

}  // namespace posattn::cuda::medium
