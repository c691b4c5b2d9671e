// What a model is measured against where the exact answer alone says too little: a predictor that
// is no network, such as the best one that knows only a part of the sample. A task offers its own
// (Task::baselines); they answer the very test samples that models do.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace posattn {

struct SampleView {
  std::span<const float> values;    // [real_nodes, data_columns]
  std::span<const int32_t> tokens;  // [real_nodes]; empty without a vocabulary
};

struct Baseline {
  std::string name;         // in flags, files and figures: "query-blind"
  std::string description;  // what it knows
  // Fills outputs [real_nodes, output_columns]; those that do not count may stay as they are.
  std::function<void(int length, const SampleView& sample, std::span<float> outputs)> predict;
};

}  // namespace posattn
