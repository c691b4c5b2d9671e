#include "posattn/model/cuda/small_positional/kernels.cuh"

namespace posattn::cuda::positional {

template FusedKernels fused_kernels<false>();

}  // namespace posattn::cuda::positional
