#include "posattn/model/cuda/small_positional/kernels.cuh"

namespace posattn::cuda::positional {

template FusedKernels fused_kernels<true>();

}  // namespace posattn::cuda::positional
