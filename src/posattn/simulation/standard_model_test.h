// Small standard models with initial weights for tests of the simulation.
#pragma once

#include <string>

#include "posattn/model/file/model_file.h"
#include "posattn/model/spec/tensor_names.h"
#include "posattn/tasks/dataset.h"

namespace posattn::testing {

inline Model standard_model(int length, int depth, uint64_t seed, bool causal = false,
                            int heads = 2) {
  const std::string task = "cumulative-sum";
  ModelSpec spec;
  apply_preset("standard", spec);
  spec.real_nodes = find_task(task).shape(length).real_nodes;
  spec.width = 6;
  spec.mlp_width = 7;
  spec.heads = heads;
  spec.causal = causal;
  spec.depth = depth;
  spec = resolve(spec);
  Model model{spec, Parameters<float>(spec), {.task = task, .length = length, .notes = {}}};
  initialise(model.parameters, seed);
  // Attention that depends on the data.
  for (int l = 0; l < depth; ++l) {
    for (float& w : model.parameters[names::of_layer(l, names::weight(names::query_key))]) w *= 4;
  }
  return model;
}

inline Dataset inputs_for(const Model& model, int64_t samples, Purpose purpose) {
  return make_dataset({.task = &find_task(model.origin.task),
                       .length = model.origin.length,
                       .samples = samples,
                       .range = training_range(2, false),
                       .purpose = purpose});
}

}  // namespace posattn::testing
