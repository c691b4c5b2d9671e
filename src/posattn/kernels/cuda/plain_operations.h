// The CUDA rows of the operations whose code on the CPU is kernels/generic. No CUDA types.
#pragma once

#include <vector>

#include "posattn/kernels/cuda/operations.h"

namespace posattn::cuda {

std::vector<CudaOperation> plain_cuda_operations();

}  // namespace posattn::cuda
