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

}  // namespace posattn::cuda
