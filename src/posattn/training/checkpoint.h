// A run's state as one safetensors file, written atomically: the weights under their own names,
// Adam's moments under "optimiser.first.NAME" and "optimiser.second.NAME", the counters, the
// schedule and the configuration in the metadata. Random numbers are functions of seed, epoch and
// index, so the counters are the whole random state. Numbers are stored exactly.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

#include "posattn/training/run.h"
#include "posattn/training/run_config.h"

namespace posattn {

void save_checkpoint(const std::filesystem::path& path, const RunConfig& config,
                     const RunState& state);

// Throws Error(data) for a file that is no checkpoint and Error(configuration), naming the settings
// that differ, for a checkpoint of another configuration (result_neutral_keys may differ, and the
// number of epochs where a run can be extended).
RunState load_checkpoint(const std::filesystem::path& path, const RunConfig& config);

// A checkpoint as bytes; `path` stands for them in errors.
std::vector<std::byte> checkpoint_bytes(const RunConfig& config, const RunState& state);
RunState state_from_checkpoint(std::span<const std::byte> bytes, const RunConfig& config,
                               const std::filesystem::path& path);

}  // namespace posattn
