// config.json of a GPT-2, as Hugging Face distributes it, and the model that it means.
#pragma once

#include <string>
#include <string_view>

#include "posattn/model/spec/spec.h"

namespace posattn {

struct Gpt2Config {
  int width = 768, depth = 12, heads = 12;
  int positions = 1024;  // rows of the table: no text may be longer
  int vocabulary = 50257;
  int mlp_width = 3072;

  bool operator==(const Gpt2Config&) const = default;
};

// Throws Error(data) for what is not a GPT-2 as published: another kind of model, other functions,
// sizes that do not fit together. `where` names the file.
Gpt2Config read_gpt2_config(std::string_view json, const std::string& where);

// The model for texts of `nodes` tokens (at least 1): the first so many rows of the table of
// positions. Throws Error(configuration) where the table has fewer.
ModelSpec gpt2_spec(const Gpt2Config& config, int nodes);

// "gpt2", "gpt2-medium", "gpt2-large" or "gpt2-xl" for the public sizes, "gpt2-12x768" for others.
std::string gpt2_name(const ModelSpec& spec);

}  // namespace posattn
