#include "posattn/kernels/cuda/device_info.h"

namespace posattn {

DeviceInfo device_info() {
  DeviceInfo info;
  info.problem = "this build has no CUDA engine";
  info.hint = "build with the CUDA toolkit: cmake --preset cuda && cmake --build --preset cuda";
  return info;
}

}  // namespace posattn
