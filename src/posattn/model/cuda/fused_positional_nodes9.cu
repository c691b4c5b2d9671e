#include "posattn/model/cuda/fused_positional_kernels.cuh"

namespace posattn::cuda::positional {

template FusedKernels fused_kernels<9>(Precision);

}  // namespace posattn::cuda::positional
