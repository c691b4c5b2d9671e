// One head's attention from data, of the collapsed network: in every sample
//   A_ij = softmax over j of s_i' M s_j + mu' s_j,   z_i = sum_j A_ij s_j,
// and its derivatives. States lie as in CollapsedEngine, [node, sample, feature].
#pragma once

#include "posattn/tensor/buffer.h"

namespace posattn::bounds {

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

}  // namespace posattn::bounds
