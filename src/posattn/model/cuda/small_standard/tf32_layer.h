// What the kernels of layers 1 and later take in tf32, and which there are.
#pragma once

#include "posattn/model/cuda/small_positional/layer.h"

namespace posattn::cuda::standard_tf32 {

struct DataLayer : positional::FusedLayer {
  char* attention_tiles;  // SampleAttention [slots, tiles]
  int real_nodes;         // of the spec
};

struct DataKernels {
  positional::LayerKernel<DataLayer> forward, last, backward;
  int64_t tile_bytes, attention_bytes;
  int threads;  // of a block
};
DataKernels data_kernels();

}  // namespace posattn::cuda::standard_tf32
