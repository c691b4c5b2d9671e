// The GPU that the CUDA engine would use, or why there is none. No CUDA types: a build without the
// CUDA engine answers too (kernels/no_cuda/device_info.cc).
#pragma once

#include <cstdint>
#include <string>

namespace posattn {

struct DeviceInfo {
  bool built = false;   // this build has the CUDA engine
  bool usable = false;  // and a GPU that can run it; else `problem` and `hint` say why not
  std::string name;
  std::string driver, toolkit;  // CUDA versions, "13.0": the driver's, and that of this build
  int multiprocessors = 0;
  int major = 0, minor = 0;  // compute capability
  int64_t memory_bytes = 0;
  int64_t shared_bytes = 0;  // most of a block
  std::string problem, hint;
};

// Never throws.
DeviceInfo device_info();

}  // namespace posattn
