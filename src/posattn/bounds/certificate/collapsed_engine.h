// The collapsed network in float, forward and backward over a batch, from a vector of coordinates:
// thousands of noisy networks a second. `forward` of collapsed_network.h is its oracle.
//
// States lie node after node, [node, sample, feature], so that mixing from positions is one product
// A_h [nodes, nodes] times S [nodes, samples features], and a map one over all nodes and samples.
#pragma once

#include <span>

#include "posattn/bounds/certificate/coordinates.h"
#include "posattn/tensor/buffer.h"

namespace posattn::bounds {

// One head's attention from data, of the collapsed network: in every sample
//   A_ij = softmax over j of s_i' M s_j + mu' s_j,   z_i = sum_j A_ij s_j,
// and its derivatives. States lie as in CollapsedEngine, [node, sample, feature].

struct MixingShape {
  int nodes = 0, samples = 0, features = 0;
};

class DataMixing {
 public:
  explicit DataMixing(const MixingShape& largest);

  void forward(const MixingShape& shape, const float* states, const float* scores,
               const float* score_offset, float* mixed);

  // Follows forward on the same states. Adds to the derivatives by states, M and mu.
  void backward(const MixingShape& shape, const float* states, const float* scores,
                const float* score_offset, const float* by_mixed, float* by_states,
                float* by_scores, float* by_score_offset);

 private:
  Buffer<float> queries_;     // M' s_i [node, sample, feature]
  Buffer<float> by_queries_;  // the same shape
  Buffer<float> attention_;   // [sample, node, node]
};

// The error u of an output as a loss in [0, 1]: min(u^2, b^2) / b^2.
struct OutputLoss {
  double clip = 1;      // b
  bool smooth = false;  // slopes are those of u^2 / (b^2 + u^2), which has one beyond b too
};

// Samples with their answers.
struct LabelledSamples {
  std::span<const float> inputs, targets;  // [samples, real nodes]
  int64_t samples = 0;
};

struct LabelledBatch {
  const float* inputs = nullptr;   // [samples, real nodes]
  const float* targets = nullptr;  // [samples, real nodes]
  int samples = 0;
};

class CollapsedEngine {
 public:
  // Takes batches of up to `samples`. `coordinates` must outlive this.
  CollapsedEngine(const Coordinates& coordinates, int samples);

  // Mean loss over outputs and samples.
  double loss(const float* weights, const LabelledBatch& batch, const OutputLoss& loss);

  // The same; adds the slope of the loss (or of what stands in for it) to `gradient`.
  double add_gradient(const float* weights, const LabelledBatch& batch, const OutputLoss& loss,
                      float* gradient);

  // The last batch's outputs, [real nodes, samples].
  const Buffer<float>& outputs() const { return outputs_; }

 private:
  struct LayerMemory {
    std::vector<Buffer<float>> mixed;      // A_h S, h = 1..H [nodes, samples, in]
    std::vector<Buffer<float>> attention;  // A_h [nodes, nodes] of positions
    std::vector<DataMixing> from_data;     // A_h of each sample
  };

  void run_forward(const float* weights, const LabelledBatch& batch);
  void run_layer(size_t index, const float* weights, int samples);
  // Reads the derivative by the state after the layer, writes that by the state before it.
  void back_layer(size_t index, const float* weights, int samples, float* gradient);
  // The derivative by each output, [real nodes, samples], if `slopes`.
  double measure(const LabelledBatch& batch, const OutputLoss& loss, bool slopes);

  const Coordinates& coordinates_;
  std::vector<LayerMemory> memory_;
  std::vector<Buffer<float>> states_;  // before each layer, and after the last
  Buffer<float> outputs_, slopes_;
  Buffer<float> by_state_, by_previous_, by_mixed_;
};

}  // namespace posattn::bounds
