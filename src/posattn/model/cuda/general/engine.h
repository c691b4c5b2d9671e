// The engine that carries out any plan but routes, as it is written (nothing folded): every map is
// one batched product over all slots. For .cu files.
#pragma once

#include <memory>

#include "posattn/model/cuda/step/step_engine.h"

namespace posattn::cuda {

// Floats of a slot's queries, keys and scores from data (64 MB): the engine keeps them from forward
// to backward if all fit, and otherwise computes them twice, in chunks of samples that fit.
constexpr int64_t general_attention_budget = 16 << 20;

bool general_supports(const ModelSpec& spec);
std::unique_ptr<StepEngine> make_general(const FleetShape& shape,
                                         int64_t attention_budget = general_attention_budget);
int64_t general_bytes(const FleetShape& shape);

// The forward pass alone, in a fraction of the memory.
class ForwardEngine {
 public:
  virtual ~ForwardEngine() = default;
  // Reads neither targets nor labels.
  virtual void enqueue(const StepData& data, const float* parameters, cudaStream_t stream) = 0;
  // Where its outputs are, until the next call: of a slot [nodes, sample_stride, output_columns].
  virtual const float* outputs(int slot) const = 0;
};
std::unique_ptr<ForwardEngine> make_general_forward(const FleetShape& shape);
int64_t general_forward_bytes(const FleetShape& shape);

}  // namespace posattn::cuda
