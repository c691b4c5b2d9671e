// The kernels of the fused positional engine. A tile of 16 samples goes through a layer in one
// block of eight warps; a warp has sixteen columns of all nodes and of all three maps for eight
// samples, so that products need not leave its registers to be mixed over nodes, on the tensor
// core as well. With L the last layer:
//   forward   r -> next r, layers 1 .. L - 1; layer 1 makes r from the inputs
//   last      r -> u -> output -> loss -> errors of u, never stored -> gradients, errors before
//   backward  r, errors -> gradients, errors before; layer 1 ends with layer 0's gradient
// Tiles are copied into shared memory one or two ahead.
#pragma once

#include "posattn/model/cuda/small_positional/backward.cuh"
#include "posattn/model/cuda/small_positional/forward.cuh"
#include "posattn/model/cuda/small_positional/last.cuh"

namespace posattn::cuda::positional {

template <bool exact>
FusedKernels fused_kernels() {
  constexpr int many = forward_blocks<exact>;
  return {{{forward_layer<exact, false>, sizeof(ForwardShared<exact, false>), many},
           {forward_layer<exact, true>, sizeof(ForwardShared<exact, true>), many}},
          {{last_layer<exact, false>, sizeof(LastShared<exact, false>), 1},
           {last_layer<exact, true>, sizeof(LastShared<exact, true>), 1}},
          {{backward_layer<exact, false>, sizeof(BackwardShared<exact, false>), 1},
           {backward_layer<exact, true>, sizeof(BackwardShared<exact, true>), 1}},
          sizeof(Tile<exact>),
          threads};
}

}  // namespace posattn::cuda::positional
