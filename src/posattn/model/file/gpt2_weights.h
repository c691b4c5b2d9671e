// GPT-2's weights by their public names (Hugging Face's), as ours and back.
//
// Theirs are [in, out]; queries, keys and values are the three thirds of `attn.c_attn`, each head
// after head, while ours interleaves a head's query and key. Names may begin with "transformer.".
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "posattn/model/file/gpt2_config.h"
#include "posattn/model/file/safetensors.h"
#include "posattn/model/spec/parameters.h"

namespace posattn {

// `spec` as gpt2_spec makes it of `config`. Throws Error(data) for a tensor that is missing, of
// another shape or type (F32, F16 and BF16 are read) or that no GPT-2 has, for an output table that
// is not the table of tokens, and for weights that are not finite. `where` names the file.
Parameters<float> gpt2_parameters(const Gpt2Config& config, const ModelSpec& spec,
                                  const SafetensorsFile& file, const std::string& where);

// Numbers laid out as the model's parameters (weights or their gradient), by public name.
struct PublicTensor {
  std::vector<int64_t> shape;
  std::vector<double> values;
};
template <class T>
std::map<std::string, PublicTensor> gpt2_tensors(const ModelSpec& spec,
                                                 const Parameters<T>& parameters);

// A folder with config.json and model.safetensors, and the tokeniser's files, which are read
// elsewhere (text/byte_pair_tokeniser.h).
bool is_gpt2_folder(const std::filesystem::path& path);
Gpt2Config read_gpt2_config(const std::filesystem::path& folder);
Parameters<float> read_gpt2_parameters(const std::filesystem::path& folder, const ModelSpec& spec);

}  // namespace posattn
