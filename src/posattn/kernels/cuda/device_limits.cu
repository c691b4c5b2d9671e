#include "posattn/kernels/cuda/device_limits.h"
#include "posattn/kernels/cuda/runtime.h"

namespace posattn::cuda {

DeviceLimits device_limits() {
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  const auto ask = [device](cudaDeviceAttr attribute) {
    int value = 0;
    check(cudaDeviceGetAttribute(&value, attribute, device), "cudaDeviceGetAttribute");
    return value;
  };
  return {ask(cudaDevAttrComputeCapabilityMajor), ask(cudaDevAttrComputeCapabilityMinor),
          ask(cudaDevAttrMaxSharedMemoryPerBlockOptin)};
}

}  // namespace posattn::cuda
