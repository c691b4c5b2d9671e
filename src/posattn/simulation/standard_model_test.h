// Small standard models with initial weights for tests of the simulation.
#pragma once

#include <string>

#include "posattn/model/file/model_file.h"
#include "posattn/model/spec/tensor_names.h"
#include "posattn/tasks/dataset.h"

namespace posattn::testing {

inline Model standard_model(int length, int depth, uint64_t seed, bool causal = false,
                            int heads = 2, const std::string& task = "cumulative-sum",
                            bool positions_added = false) {
  ModelSpec spec;
  spec.positions_added = positions_added;
  spec.encoding = Encoding::automatic;
  apply_preset("standard", spec);
  const TaskShape shape = find_task(task).shape(length);
  spec.real_nodes = shape.real_nodes;
  spec.data_columns = shape.data_columns;
  spec.output_columns = shape.output_columns;
  spec.vocabulary = shape.vocabulary;
  spec.tokens_and_values = shape.tokens_and_values;
  spec.read_nodes = shape.read_nodes;
  spec.loss = find_task(task).loss();
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

// Tokens alone with either kind of positions; classes; a token or a number; both.
struct TokenTask {
  const char* name;
  int length;
  bool positions_added;
};
inline constexpr TokenTask token_tasks[] = {{"contextual-counting", 8, false},
                                            {"one-hop", 4, true},
                                            {"contextual-sum", 8, true},
                                            {"recall", 3, false}};

inline Model rope_model(int length, int depth, uint64_t seed, bool causal) {
  Model model = standard_model(length, depth, seed, causal);
  model.spec.rotation = Rotation::rope;
  // Queries and keys whose means count.
  for (int l = 0; l < depth; ++l) {
    float sign = 1;
    for (float& b : model.parameters[names::of_layer(l, names::bias(names::query_key))]) {
      b = sign = -sign;
    }
  }
  return model;
}

inline Model model_of(const TokenTask& of, int depth, uint64_t seed) {
  return standard_model(of.length, depth, seed, false, 2, of.name, of.positions_added);
}

inline Dataset inputs_for(const Model& model, int64_t samples, Purpose purpose) {
  return make_dataset({.task = &find_task(model.origin.task),
                       .length = model.origin.length,
                       .samples = samples,
                       .range = training_range(2, false),
                       .purpose = purpose});
}

}  // namespace posattn::testing
