#include "posattn/model/inference.h"

#include <utility>

#include "posattn/model/check_batch.h"

namespace posattn {

Path path_for(const Model& model) { return is_compiled(model) ? Path::plain : Path::automatic; }

Inference::Inference(Model model, int threads)
    : model_(std::move(model)),
      network_(model_.spec, {.path = path_for(model_), .threads = threads}) {}

void Inference::run(const Batch& batch, std::span<float> outputs) {
  check_batch(model_.spec, batch);
  if (batch.real_nodes != prepared_nodes_) {
    prepared_nodes_ = 0;
    network_.prepare(model_.parameters, batch.real_nodes);
    prepared_nodes_ = batch.real_nodes;
  }
  network_.run(batch, outputs);
}

std::vector<float> Inference::run(const Batch& batch) {
  std::vector<float> outputs(batch.samples * batch.real_nodes * model_.spec.output_columns);
  run(batch, outputs);
  return outputs;
}

std::vector<float> Inference::attention(const Batch& one_sample) {
  prepared_nodes_ = 0;
  return network_.attention(model_.parameters, one_sample);
}

}  // namespace posattn
