// The engine of the numeric models (arXiv 2410.01686): a *tile* of a few samples goes through the
// whole network, forward and backward, before the next, so its activations stay in cache.
#pragma once

#include <memory>
#include <vector>

#include "posattn/base/pool.h"
#include "posattn/model/network_engine.h"
#include "posattn/model/tiles/stage.h"
#include "posattn/model/tiles/tiles.h"
#include "posattn/tensor/buffer.h"

namespace posattn::engine {

class TileNetwork : public NetworkEngine {
 public:
  static bool supports(const ModelSpec& spec, Path path);
  TileNetwork(const ModelSpec& spec, const NetworkOptions& options);

  void prepare(const Parameters<float>& parameters, int real_nodes) override;
  void run(const Batch& batch, std::span<float> outputs) const override;
  double gradient(const Parameters<float>& parameters, const Batch& batch,
                  std::span<const uint8_t> mask, Parameters<float>& gradient) override;
  std::vector<float> attention(const Parameters<float>& parameters, const Batch& batch) override;
  Network::Work work() const override;

 private:
  // One thread's memory for a tile. A call borrows one for each of its threads.
  struct Workspace {
    Buffer<float> memory;
    int64_t size = 0;  // of what it is laid out for
    std::vector<float*> tapes;
    float *output = nullptr, *doutput = nullptr;
    float* scratch[2] = {};  // stages alternate, since one's dinput is the next one's doutput
  };
  using Workspaces = Pool<std::vector<Workspace>>;

  // Whether positions are columns of the first stage's input.
  bool has_input_positions() const { return spec_.positions_in_input && !encodes_apart_; }
  bool learns_input_positions() const {
    return has_input_positions() && spec_.encoding == Encoding::learned;
  }
  bool learns_positions() const {
    return spec_.uses_positions() && spec_.encoding == Encoding::learned;
  }
  void prepare_stages(const Parameters<float>& parameters, int real_nodes, AttentionForm form);
  void place_gradients(int64_t samples);
  int64_t workspace_size(int samples) const;
  int default_tile() const;
  int group_count(int64_t tiles) const;
  Workspaces::Borrowed workspaces() const;
  Workspace& lay_out(Workspace& work) const;
  void load_inputs(const Batch& batch, const Tile& tile, float* tape) const;
  void run_forward(const Batch& batch, const Tile& tile, Workspace& work) const;
  double run_tile(const Batch& batch, const Tile& tile, std::span<const uint8_t> mask,
                  Workspace& work, float* sums) const;
  void finish(Parameters<float>& gradient);

  const ModelSpec spec_;
  NetworkOptions options_;
  ParameterLayout layout_;
  bool encodes_apart_ = false;  // the first stage is an InputStage
  std::vector<std::unique_ptr<Stage>> stages_;
  std::vector<int64_t> offsets_;  // of each stage's accumulators in a group's
  int64_t gradient_size_ = 0, input_positions_ = 0;
  int tile_ = 1;
  int64_t workspace_size_ = 0;  // for what is prepared
  ActiveNodes active_;
  Buffer<float> positions_;  // [active nodes, encoding_size] when they are part of the input
  mutable Workspaces workspaces_;
  Buffer<float> group_sums_;               // [groups, gradient_size]
  std::vector<Buffer<float>> dpositions_;  // of each stage, [nodes, encoding_size]
};

}  // namespace posattn::engine
