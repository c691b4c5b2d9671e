#include "posattn/model/cuda/small_positional/kernels.cuh"

namespace posattn::cuda::positional {

template FusedKernels fused_kernels<9>(Precision);

}  // namespace posattn::cuda::positional
