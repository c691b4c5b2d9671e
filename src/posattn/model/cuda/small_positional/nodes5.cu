#include "posattn/model/cuda/small_positional/kernels.cuh"

namespace posattn::cuda::positional {

template FusedKernels fused_kernels<5>(Precision);

}  // namespace posattn::cuda::positional
