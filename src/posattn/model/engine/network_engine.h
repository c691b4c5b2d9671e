// The interface that computes a model on the CPU: the tile engine for the paper's models, routes
// for compiled programs, the block executor for everything else. Batches are checked before they
// come here.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "posattn/base/parallel.h"
#include "posattn/model/network.h"

namespace posattn::engine {

class NetworkEngine {
 public:
  virtual ~NetworkEngine() = default;

  // Computes what follows from the weights alone. Then run answers batches of this length, for
  // several callers at once: each borrows the memory that a call needs.
  virtual void prepare(const Parameters<float>& parameters, int real_nodes) = 0;
  virtual void run(const Batch& batch, std::span<float> outputs) const = 0;

  virtual double gradient(const Parameters<float>& parameters, const Batch& batch,
                          std::span<const uint8_t> mask, Parameters<float>& gradient) = 0;
  virtual std::vector<float> attention(const Parameters<float>& parameters,
                                       const Batch& one_sample) = 0;
  virtual Network::Work work() const { return {}; }
};

// The block executor (plan/block_executor.cc) and the one of routes (routed_engine.cc).
std::unique_ptr<NetworkEngine> make_block_executor(const ModelSpec& spec,
                                                   const NetworkOptions& options);
std::unique_ptr<NetworkEngine> make_routed_engine(const ModelSpec& spec,
                                                  const NetworkOptions& options);

}  // namespace posattn::engine
