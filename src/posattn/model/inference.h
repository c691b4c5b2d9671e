// A model that answers many batches. Whatever follows from its weights alone is prepared once and
// kept: folded weights, attention from positions, the sparse maps of a compiled program.
//
// Any number of threads may use one Inference at the same time; each call still computes on as many
// threads as the Inference was made for. An answer has the same bits whoever else asks.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "posattn/model/model_file.h"
#include "posattn/model/network.h"

namespace posattn {

class Inference {
 public:
  explicit Inference(Model model, int threads = 1);
  // Shares the model, whose weights stay as they are until weights_changed() says otherwise.
  explicit Inference(std::shared_ptr<const Model> model, int threads = 1);
  ~Inference();
  Inference(Inference&&) noexcept;
  Inference& operator=(Inference&&) noexcept;

  const Model& model() const;

  // outputs [samples, real_nodes, output_columns]. What is prepared for a length is kept for the
  // four lengths that were used last. Throws as check_batch does.
  void run(const Batch& batch, std::span<float> outputs) const;
  std::vector<float> run(const Batch& batch) const;

  // Attention of one sample, [depth, heads, nodes, nodes].
  std::vector<float> attention(const Batch& one_sample) const;
  // Network::gradient at the model's weights.
  double gradient(const Batch& batch, std::span<const uint8_t> mask,
                  Parameters<float>& gradient) const;

  // Calls that begin from now on see the weights that a shared model has now.
  void weights_changed() const;

 private:
  class Networks;
  std::unique_ptr<Networks> networks_;
};

// A compiled model is evaluated as it is written: its numbers are exact only in that order.
Path path_for(const Model& model);

}  // namespace posattn
