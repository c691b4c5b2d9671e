#include "posattn/base/error.h"
#include "posattn/benchmark/steps.h"
#include "posattn/kernels/cuda/device_info.h"

namespace posattn {

DeviceCeilings measure_device_ceilings() {
  const DeviceInfo info = device_info();
  throw Error(ExitCode::device, info.problem, "a build with the CUDA engine", info.hint);
}

}  // namespace posattn
