// For tests: the files of a small GPT-2 with random weights, under public names.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "posattn/base/file.h"
#include "posattn/base/random.h"
#include "posattn/model/file/gpt2_weights.h"

namespace posattn {

inline constexpr Gpt2Config small_gpt2 = {
    .width = 8, .depth = 2, .heads = 2, .positions = 12, .vocabulary = 11, .mlp_width = 32};

inline constexpr std::string_view small_gpt2_config =
    R"({"model_type": "gpt2", "n_embd": 8, "n_layer": 2, "n_head": 2, "n_positions": 12,
        "n_ctx": 12, "vocab_size": 11, "activation_function": "gelu_new", "n_inner": null,
        "layer_norm_epsilon": 1e-05, "architectures": ["GPT2LMHeadModel"]})";

struct FloatTensor {
  std::vector<int64_t> shape;
  std::vector<float> values;
};
using FloatTensors = std::map<std::string, FloatTensor>;

inline FloatTensors small_gpt2_tensors(uint64_t seed) {
  const ModelSpec spec = gpt2_spec(small_gpt2, small_gpt2.positions);
  RandomStream random(seed, Purpose::initial_values, 0, 0);
  FloatTensors tensors;
  for (const auto& [name, tensor] : gpt2_tensors(spec, Parameters<float>(spec))) {
    FloatTensor& made = tensors[name];
    made.shape = tensor.shape;
    for (size_t i = 0; i < tensor.values.size(); ++i) {
      made.values.push_back(static_cast<float>(random.normal() * 0.3));
    }
  }
  return tensors;
}

inline std::vector<std::byte> file_of(const FloatTensors& tensors) {
  std::vector<TensorView> views;
  for (const auto& [name, tensor] : tensors) {
    views.push_back(make_view<float>(name, tensor.shape, tensor.values));
  }
  return write_safetensors({{"format", "pt"}}, views);
}

}  // namespace posattn
