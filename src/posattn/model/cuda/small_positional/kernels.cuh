// The kernels of the fused positional engine. A tile of 16 samples goes through a layer in one
// block of eight warps; a warp has eight columns of all nodes and of all three maps, so that mixing
// over nodes happens in a thread's registers. With L the last layer:
//   forward   r -> next r, layers 1 .. L - 1; layer 1 makes r from the inputs
//   last      r -> u -> output -> loss -> errors of u, never stored -> gradients, errors before
//   backward  r, errors -> gradients, errors before; layer 1 ends with layer 0's gradient
// Tiles are copied into shared memory one or two ahead.
#pragma once

#include "posattn/model/cuda/small_positional/backward.cuh"
#include "posattn/model/cuda/small_positional/forward.cuh"
#include "posattn/model/cuda/small_positional/last.cuh"

namespace posattn::cuda::positional {

template <bool exact, int N>
FusedKernels fused_kernels_of() {
  return {{{forward_layer<exact, N, false>, sizeof(ForwardShared<N, false>)},
           {forward_layer<exact, N, true>, sizeof(ForwardShared<N, true>)}},
          {{last_layer<exact, N, false>, sizeof(LastShared<N, false>)},
           {last_layer<exact, N, true>, sizeof(LastShared<N, true>)}},
          {{backward_layer<exact, N, false>, sizeof(BackwardShared<N, false>)},
           {backward_layer<exact, N, true>, sizeof(BackwardShared<N, true>)}},
          N};
}

template <int nodes>
FusedKernels fused_kernels(Precision precision) {
  return precision == Precision::fp32 ? fused_kernels_of<true, nodes>()
                                      : fused_kernels_of<false, nodes>();
}

}  // namespace posattn::cuda::positional
