#include "posattn/model/cuda/fused_positional_kernels.cuh"

namespace posattn::cuda::positional {

template FusedKernels fused_kernels<3>(Precision);

}  // namespace posattn::cuda::positional
