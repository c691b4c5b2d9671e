// Copies operands of the table of operations to device memory and back. For .cu files.
#pragma once

#include "posattn/kernels/cuda/runtime.h"
#include "posattn/kernels/operations.h"

namespace posattn::cuda {

inline DeviceBuffer<float> to_device(const Buffer<float>& host) {
  DeviceBuffer<float> device(static_cast<int64_t>(host.size()));
  device.upload(host.data(), device.size());
  return device;
}
inline void to_host(const DeviceBuffer<float>& device, Buffer<float>& host) {
  device.download(host.data(), device.size());
}

}  // namespace posattn::cuda
