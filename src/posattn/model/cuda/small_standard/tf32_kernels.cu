#include "posattn/model/cuda/small_standard/tf32_backward.cuh"
#include "posattn/model/cuda/small_standard/tf32_forward.cuh"

namespace posattn::cuda::standard_tf32 {

DataKernels data_kernels() {
  return {{data_forward_layer<false>, sizeof(DataForwardShared<false>), 2},
          {data_forward_layer<true>, sizeof(DataForwardShared<true>), 1},
          {data_backward_layer, sizeof(DataBackwardShared), 1},
          sizeof(Tile<false>),
          sizeof(SampleAttention),
          threads};
}

}  // namespace posattn::cuda::standard_tf32
