// The fp32 engine on the CPU: forward and backward of any ModelSpec.
//
// Design goals: near the machine's arithmetic peak on the paper's small models; the same bits for
// any number of threads; the paper's models by tiles (tiles/tile_network.h), on a folded path that
// does about half the arithmetic where it pays (docs/performance.md); compiled programs by routes
// (routed_network.h), without backward; every other model by a block executor of its plan
// (blocks/block_network.h). Non-goals: autograd, mixed precision.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "posattn/model/spec/batch.h"
#include "posattn/model/spec/parameters.h"
#include "posattn/model/spec/spec.h"

namespace posattn {

namespace engine {
class NetworkEngine;
}

// The interface that computes outputs of samples: the CPU engine (network.h) or a GPU
// (device_network.h).
class ForwardPass {
 public:
  virtual ~ForwardPass() = default;

  // outputs [samples, real_nodes, output_columns]
  virtual void forward(const Parameters<float>& parameters, const Batch& batch,
                       std::span<float> outputs) = 0;
};

enum class Path { automatic, plain, folded };

struct NetworkOptions {
  // automatic: per layer, whichever needs fewer multiply-adds; inference over many nodes also by
  // other means than attention matrices (tiles/mixing.h)
  Path path = Path::automatic;
  int threads = 1;
  int tile = 0;  // samples per tile; 0: chosen from the sizes
};

// A network belongs to one thread at a time; once it is prepared, any number of threads may call
// run at once.
class Network final : public ForwardPass {
 public:
  explicit Network(const ModelSpec& spec, NetworkOptions options = {});
  ~Network() override;
  Network(Network&&) noexcept;
  Network& operator=(Network&&) noexcept;

  const ModelSpec& spec() const { return spec_; }

  void forward(const Parameters<float>& parameters, const Batch& batch,
               std::span<float> outputs) override;
  // The same in two steps: what follows from the weights alone is done once for many batches of one
  // length. The parameters must outlive the calls of run.
  void prepare(const Parameters<float>& parameters, int real_nodes);
  void run(const Batch& batch, std::span<float> outputs) const;

  // The spec's loss. Mean squared error: sum over outputs with mask != 0, divided by samples x
  // real_nodes x columns. Cross-entropy: mean over the nodes that count: label >= 0, and mask != 0
  // in the node's first column.
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
  ModelSpec spec_;
  std::unique_ptr<engine::NetworkEngine> engine_;
  int prepared_nodes_ = 0;
};

}  // namespace posattn
