// A model that answers many questions: what follows from its weights alone (folded weights,
// attention from positions, the sparse maps of a compiled program) is prepared once and kept.
#pragma once

#include <span>
#include <vector>

#include "posattn/model/model_file.h"
#include "posattn/model/network.h"

namespace posattn {

class Inference {
 public:
  explicit Inference(Model model, int threads = 1);

  const Model& model() const { return model_; }

  // outputs [samples, real_nodes, output_columns]. Prepares again only for another length. Throws
  // as check_batch does.
  void run(const Batch& batch, std::span<float> outputs);
  std::vector<float> run(const Batch& batch);

  // Attention of one sample, [depth, heads, nodes, nodes].
  std::vector<float> attention(const Batch& one_sample);

 private:
  Model model_;
  Network network_;
  int prepared_nodes_ = 0;
};

// A compiled model is evaluated as it is written: its numbers are exact only in that order.
Path path_for(const Model& model);

}  // namespace posattn
