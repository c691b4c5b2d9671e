// The layers of the large engine (large/layer.h) whose attention comes from the data, for the
// paper's sizes and tf32: two heads, width and hidden width 64, 10 to 80 nodes, not layer 0. They
// work as the kernels of layer.h do, with products of halves; a head's attention is 16 nodes at a
// time in a warp's registers.
#pragma once

#include "posattn/model/cuda/large/layer.h"

namespace posattn::cuda::medium {

// On this device.
bool takes_data_layer(const large::Layer& layer, Precision precision);
int64_t data_backward_shared_bytes(int nodes);
void enqueue_data_forward(const large::Layer& layer, cudaStream_t stream);
// `group`: samples of a group.
void enqueue_data_backward(const large::Layer& layer, int group, cudaStream_t stream);

}  // namespace posattn::cuda::medium
