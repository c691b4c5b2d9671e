// Streams for the part of a step that no later kernel of the layer waits for: gradients of weights,
// which are half of a backward pass, and attention from positions, which is known before the first
// layer and whose gradient goes to parameters alone. Where one run's kernels leave most of the GPU
// idle, this work fills it.
//
// What it reads must stay until it is done: GeneralLayout has two places for most gradients of a
// layer, and a layer begins when the concurrent work of the layer two before it is done.
#pragma once

#include <deque>

#include "posattn/kernels/cuda/runtime.h"
#include "posattn/kernels/cuda/stream.h"

namespace posattn::cuda {

struct ConcurrentStream {
  ConcurrentStream(int depth, int64_t workspace_floats)
      : layer(depth), workspace(workspace_floats) {}

  Stream stream{Stream::independent};
  Event begin;                    // what the step's stream has done so far
  std::deque<Event> layer;        // of each layer: its work here is done
  DeviceBuffer<float> workspace;  // of products
};

struct ConcurrentStreams {
  ConcurrentStreams(int depth, int64_t workspace_floats)
      : weights(depth, workspace_floats), scores(depth, workspace_floats), shared(depth) {}

  ConcurrentStream weights;  // gradients of linear maps
  ConcurrentStream scores;   // of attention that does not depend on the data
  std::deque<Event> shared;  // of each layer: such attention is known
};

}  // namespace posattn::cuda
