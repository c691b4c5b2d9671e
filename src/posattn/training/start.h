// Training that starts from the weights of a model file (`from`), a compiled program's first of
// all, instead of random ones. What decides the result is what the file holds, so its hash
// (`from-hash`) is a setting and part of the run's key; where it lies is not. A run that goes on
// from a checkpoint does not read the file again. `from` may also be a folder with a GPT-2 as it is
// distributed (config.json, model.safetensors, vocab.json, merges.txt), for tasks in its tokens.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "posattn/model/spec/parameters.h"
#include "posattn/training/run_config.h"

namespace posattn {

// Sets from-hash and, but for the settings in `named`, what the file says of its model: task,
// length, architecture and sizes. Throws Error(data) for a file that cannot be read and
// Error(configuration) for one that cannot be trained or has another hash than from-hash.
// Where from-hash is there but the file is not, it leaves everything as it is.
void take_start(RunConfig& config, const std::set<std::string>& named);

// The weights that a run of these (valid) settings starts from: the file's, each tensor with
// Gaussian noise of from-noise times its root mean square, drawn from the weight seed. A tensor of
// zeros stays one. Throws as take_start, and Error(configuration), naming the fields, where the
// file's model is not that of the settings.
Parameters<float> start_parameters(const RunConfig& config);

bool is_file_hash(std::string_view text);  // 16 hexadecimal digits

}  // namespace posattn
