// Infers the spec of a model file without our metadata from the names and shapes of its tensors:
// the authors' released state dicts, converted to safetensors. Encodings are taken to be one-hot,
// with one scratch node and as many numbers out of a node as in.
#pragma once

#include <optional>

#include "posattn/model/model_file.h"
#include "posattn/model/safetensors.h"
#include "posattn/model/spec.h"

namespace posattn {

// `real_nodes`: what the user says, if anything. Throws Error(data) when the tensors make no model,
// Error(usage) when several models fit (it names the flag that settles it) or a hint contradicts.
ModelSpec infer_spec(const SafetensorsFile& file, const ModelHints& hints,
                     std::optional<int> real_nodes);

}  // namespace posattn
