// Work aside of a step: streams of its own for what no later kernel of the layer waits for.
// Weights' gradients are half of a backward pass and wait for nobody; attention from positions is
// known before the first layer, and its gradient goes to parameters alone. Where one run's kernels
// leave most of the GPU idle, they fill it.
//
// What work aside reads must stay until it is done: GeneralLayout has two places for most gradients
// of a layer, and a layer begins when the work aside of the layer two before it is done.
#pragma once

#include <deque>

#include "posattn/kernels/cuda/runtime.h"
#include "posattn/kernels/cuda/stream.h"

namespace posattn::cuda {

struct Aside {
  Aside(int depth, int64_t workspace_floats) : layer(depth), workspace(workspace_floats) {}

  Stream stream{Stream::independent};
  Event begin;                    // what the step's stream has done so far
  std::deque<Event> layer;        // of each layer: its work here is done
  DeviceBuffer<float> workspace;  // of products
};

struct Asides {
  Asides(int depth, int64_t workspace_floats)
      : weights(depth, workspace_floats), scores(depth, workspace_floats), shared(depth) {}

  Aside weights;             // gradients of linear maps
  Aside scores;              // of attention that does not depend on the data
  std::deque<Event> shared;  // of each layer: such attention is known
};

}  // namespace posattn::cuda
