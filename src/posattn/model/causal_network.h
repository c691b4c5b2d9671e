// A causal model that reads its nodes one after another: what attention needs of earlier nodes is
// kept (attention/memory.h), so a new node costs one row and not a whole sample. Outputs are those
// of the whole sample, to rounding. A model of one layer that is not causal answers for the newest
// of the last real_nodes nodes.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "posattn/model/attention/linear_maps.h"
#include "posattn/model/attention/memory.h"
#include "posattn/model/plan.h"
#include "posattn/model/spec/parameters.h"
#include "posattn/model/spec/spec.h"

namespace posattn {

class CausalNetwork {
 public:
  // Why a model cannot be read node by node; empty where it can.
  static std::string refusal(const ModelSpec& spec);

  // Throws Error(configuration) with the refusal. Keeps a reference to the parameters.
  CausalNetwork(const ModelSpec& spec, const Parameters<float>& parameters);

  // What is kept of some samples, for as long as the network lives.
  struct Memory {
    std::vector<std::vector<std::unique_ptr<NodeMemory<float>>>> layers;  // by sample
    std::vector<int> length;  // nodes that a sample has read
  };
  Memory memory(size_t samples) const;

  // New nodes of each sample, in their order; what the model does not read may be empty.
  struct Nodes {
    std::vector<float> values;    // [new nodes, data_columns]
    std::vector<int32_t> tokens;  // [new nodes]; negative: the node holds numbers
  };
  // Outputs of the last new node of every sample that has any, [samples, output_columns]. Throws
  // Error(data) where a sample would have more nodes than most_nodes().
  std::vector<float> read(std::span<const Nodes> more, Memory& memory) const;

  // No end where nothing depends on a node's place, or on that in the window alone.
  int most_nodes() const {
    return spec_.causal && placed_ ? spec_.real_nodes : std::numeric_limits<int>::max();
  }
  const ModelSpec& spec() const { return spec_; }

 private:
  // The rows that are being read: sample after sample, those of a sample by place.
  struct Rows {
    std::vector<int> places;
    std::vector<int> counts;  // by sample
    int64_t size() const { return static_cast<int64_t>(places.size()); }
  };
  std::vector<float> embedded(const Rows& rows, std::span<const Nodes> more) const;
  std::vector<float> attend(int layer, const std::vector<float>& attended, const Rows& rows,
                            Memory& memory) const;
  std::vector<float> query_key(const AttentionBlock& block, const std::vector<float>& attended,
                               const Rows& rows) const;
  std::vector<float> read_mlp(const MlpBlock& block, std::vector<float> x) const;
  std::vector<float> normalised(const NormalisationBlock& block, const std::vector<float>& x) const;
  std::vector<float> mapped(const LinearBlock& map, const std::vector<float>& x) const;
  std::vector<float> with_positions(const std::vector<float>& x, int64_t columns,
                                    const Rows& rows) const;
  const float* tensor(TensorId id) const;

  const ModelSpec spec_;
  const Plan plan_;
  const Parameters<float>& parameters_;
  LinearMaps<float> maps_;
  bool placed_ = false;           // whether the place of a node in its sample matters
  std::vector<float> positions_;  // P
  std::vector<std::vector<float>>
      position_scores_;  // of each layer, [heads, real nodes, real nodes], or empty
};

}  // namespace posattn
