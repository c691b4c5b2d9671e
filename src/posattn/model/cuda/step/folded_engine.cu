#include <algorithm>

#include "posattn/model/cuda/step/folded_engine.h"
#include "posattn/model/cuda/step/position_tables.h"

namespace posattn::cuda {
namespace {

int64_t partial_floats(const FleetShape& shape, const FoldedLayout& layout, const PartialSums& sums,
                       int64_t workspace) {
  return std::max(shape.slots * sums.parts * layout.size(), workspace);
}

}  // namespace

FoldedEngine::FoldedEngine(const FleetShape& shape, const FoldedLayout& layout,
                           const PartialSums& sums, int64_t workspace)
    : shape_(shape),
      layout_(layout),
      tensors_(shape.spec, layout),
      sums_(sums),
      positions_(positions_table(shape.spec)),
      folded_(shape.slots * layout.size()),
      folded_gradients_(shape.slots * layout.size()),
      partials_(partial_floats(shape, layout, sums, workspace)),
      losses_(shape.slots * sums.losses) {}

int64_t FoldedEngine::buffer_bytes(const FleetShape& shape, const FoldedLayout& layout,
                                   const PartialSums& sums, int64_t workspace) {
  return sizeof(float) *
             (2 * shape.slots * layout.size() + partial_floats(shape, layout, sums, workspace)) +
         sizeof(double) * shape.slots * sums.losses;
}

void FoldedEngine::enqueue(const StepData& data, const float* parameters, float* gradients,
                           double* losses, cudaStream_t stream) {
  const FoldingStep step = {data.slots, parameters,       folded_.data(), folded_gradients_.data(),
                            gradients,  partials_.data(), stream};
  fold(step);
  enqueue_layers(data, parameters, stream);
  enqueue_sum_groups(data.slots, shape_.slots, partials_.data(), folded_gradients_.data(),
                     static_cast<int>(sums_.parts), sums_.group, layout_.size(), stream,
                     {losses_.data(), static_cast<int>(sums_.losses), losses});
  finish_sums(data, parameters, losses, stream);
  unfold(step);
}

Positions FoldedEngine::positions(const float* parameters) const {
  if (tensors_.stored_positions < 0) return {positions_.data(), 0};
  return {parameters + tensors_.stored_positions, tensors_.parameter_stride};
}

int64_t multiprocessors() {
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  return properties.multiProcessorCount;
}

int tiles_of_block(int64_t tiles, int64_t slots, int64_t processors, int start) {
  int best = 1;
  int64_t least = INT64_MAX;
  for (int count = 1; count <= 32; ++count) {
    const int64_t rounds = ceil_div(ceil_div(tiles, count) * slots, processors);
    const int64_t cost = rounds * (2 * count + start);
    if (cost < least) {
      best = count;
      least = cost;
    }
  }
  return best;
}

}  // namespace posattn::cuda
