#include "posattn/kernels/cuda/runtime.h"
#include "posattn/model/cuda/step/multiprocessors.h"

namespace posattn::cuda {

int64_t multiprocessors() {
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  return properties.multiProcessorCount;
}

int tiles_of_block(int64_t tiles, int64_t slots, int64_t processors, int start) {
  int best = 1;
  int64_t least = INT64_MAX;
  for (int count = 1; count <= 32; ++count) {
    const int64_t rounds = ceil_div(ceil_div(tiles, count) * slots, processors);
    const int64_t cost = rounds * (2 * count + start);
    if (cost < least) {
      best = count;
      least = cost;
    }
  }
  return best;
}

}  // namespace posattn::cuda
