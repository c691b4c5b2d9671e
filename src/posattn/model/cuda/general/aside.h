// Work aside of a step: a second stream, for what no later kernel of the layer waits for. Weights'
// gradients are half of a backward pass and wait for nobody, and attention from positions is known
// before the first layer; where one run's kernels leave most of the GPU idle, they fill it.
//
// What work aside reads must stay until it is done: GeneralLayout has two places for most gradients
// of a layer, and a layer begins when the work aside of the layer two before it is done.
#pragma once

#include <deque>

#include "posattn/kernels/cuda/runtime.h"
#include "posattn/kernels/cuda/stream.h"

namespace posattn::cuda {

struct Aside {
  explicit Aside(int64_t workspace_floats) : workspace(workspace_floats) {}

  Stream stream{Stream::independent};
  Event begin;                      // what the step's stream has done so far
  std::deque<Event> shared, layer;  // of each layer: its attention is known; its gradients are
  DeviceBuffer<float> workspace;    // of products
};

}  // namespace posattn::cuda
