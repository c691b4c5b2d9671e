// The fp32 engine on the CPU: forward and backward of any ModelSpec.
//
// Design goals: near the machine's arithmetic peak on the paper's small models; the same bits for
// any number of threads; any spec on one plain path, the common ones on a folded path that does
// about half the arithmetic (docs/performance.md). Non-goals: autograd, mixed precision.
//
// A *tile* of a few samples goes through the whole network, forward and backward, before the next,
// so its activations stay in cache. Gradients are summed over a fixed number of groups of tiles,
// each in order, so the sum does not depend on which thread did which group.
//
// Routed models have an engine of their own (routed_network.h), without backward.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "posattn/model/parameters.h"
#include "posattn/model/spec.h"

namespace posattn {

// Samples of one length. `real_nodes` may be below the spec's (variable length): the model then
// uses the first real_nodes rows of P and the scratch rows.
struct Batch {
  const float* inputs = nullptr;   // [samples, real_nodes, data_columns]
  const float* targets = nullptr;  // [samples, real_nodes, output_columns]; forward ignores it
  int64_t samples = 0;
  int real_nodes = 0;
};

enum class Path { automatic, plain, folded };

struct NetworkOptions {
  Path path = Path::automatic;  // automatic: per layer, whichever needs fewer multiply-adds
  int threads = 1;
  int tile = 0;  // samples per tile; 0: chosen from the sizes
};

class Network {
 public:
  explicit Network(const ModelSpec& spec, NetworkOptions options = {});
  ~Network();
  Network(Network&&) noexcept;
  Network& operator=(Network&&) noexcept;

  const ModelSpec& spec() const;

  // outputs [samples, real_nodes, output_columns]
  void forward(const Parameters<float>& parameters, const Batch& batch, float* outputs);

  // Mean squared error: sum over outputs with mask != 0, divided by samples x real_nodes x columns.
  // gradient = d loss / d parameters (overwritten). mask [real_nodes, output_columns], empty: all.
  // Throws Error(configuration) for a routed model.
  double gradient(const Parameters<float>& parameters, const Batch& batch,
                  std::span<const uint8_t> mask, Parameters<float>& gradient);

  // Attention of one sample: [depth, heads, nodes, nodes] for nodes = real_nodes + scratch nodes.
  std::vector<float> attention(const Parameters<float>& parameters, const Batch& one_sample);

  // Multiply-adds of one forward pass: as the architecture is written, and as computed here, each
  // split into the part per sample and the part done once per step (attention from positions).
  // Zero for a routed model, where it depends on the weights.
  struct Work {
    double nominal_per_sample = 0, nominal_per_step = 0;
    double actual_per_sample = 0, actual_per_step = 0;
  };
  Work work() const;

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace posattn
