// Which GPU is a rank's where its machine has several: they take turns, and share them where there
// are fewer GPUs than ranks.
#pragma once

#include <optional>
#include <string>

namespace posattn {

// The variable by which CUDA is told.
constexpr const char* visible_gpus = "CUDA_VISIBLE_DEVICES";

// Its value for this rank of the machine; nothing where there are not several GPUs.
std::optional<std::string> own_gpu(int node_rank);

}  // namespace posattn
