// The CUDA runtime with C++ manners: errors are exceptions, memory frees itself, kernels are
// launched by a function. For .cu files; everyone else talks to headers without CUDA types.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

#include "posattn/kernels/cuda/device_limits.h"

namespace posattn::cuda {

// Throws Error(device) naming the call ("cudaMalloc") and what the runtime said.
void check(cudaError_t status, const char* what);

// Owns device memory, which starts as zeros. Move only.
template <class T>
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  explicit DeviceBuffer(int64_t count) : count_(count) {
    if (count == 0) return;
    check(cudaMalloc(reinterpret_cast<void**>(&data_), count * sizeof(T)), "cudaMalloc");
    check(cudaMemset(data_, 0, count * sizeof(T)), "cudaMemset");
  }
  explicit DeviceBuffer(const std::vector<T>& host)
      : DeviceBuffer(static_cast<int64_t>(host.size())) {
    upload(host.data(), count_);
  }
  ~DeviceBuffer() { cudaFree(data_); }
  DeviceBuffer(DeviceBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), count_(std::exchange(other.count_, 0)) {}
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
    return *this;
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  int64_t size() const { return count_; }

  // Blocking copies, for set-up and tests.
  void upload(const T* host, int64_t count, int64_t offset = 0) {
    check(cudaMemcpy(data_ + offset, host, count * sizeof(T), cudaMemcpyHostToDevice),
          "cudaMemcpy");
  }
  void download(T* host, int64_t count, int64_t offset = 0) const {
    check(cudaMemcpy(host, data_ + offset, count * sizeof(T), cudaMemcpyDeviceToHost),
          "cudaMemcpy");
  }
  std::vector<T> download() const {
    std::vector<T> host(count_);
    if (count_ > 0) download(host.data(), count_);
    return host;
  }

 private:
  T* data_ = nullptr;
  int64_t count_ = 0;
};

// Calls kernel<<<grid, block, shared_bytes, stream>>>(arguments...) and checks the error.
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared_bytes,
            cudaStream_t stream, Arguments&&... arguments) {
  cudaLaunchConfig_t configuration = {};
  configuration.gridDim = grid;
  configuration.blockDim = block;
  configuration.dynamicSmemBytes = shared_bytes;
  configuration.stream = stream;
  check(cudaLaunchKernelEx(&configuration, kernel, static_cast<Parameters>(arguments)...),
        "cudaLaunchKernelEx");
}

// Lets a kernel use more than 48 KB of dynamic shared memory, `bytes` or what the card has if that
// is less; before a launch.
template <class... Parameters>
void allow_shared_bytes(void (*kernel)(Parameters...), size_t bytes) {
  const auto most = static_cast<size_t>(device_limits().shared_bytes);
  check(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                             cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(std::min(bytes, most))),
        "cudaFuncSetAttribute");
}

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Host memory that the GPU reads and writes by itself, so that a copy does not stop the host.
template <class T>
class PinnedBuffer {
 public:
  explicit PinnedBuffer(int64_t count) {
    if (count == 0) return;
    check(cudaMallocHost(reinterpret_cast<void**>(&data_), count * sizeof(T)), "cudaMallocHost");
    for (int64_t i = 0; i < count; ++i) new (data_ + i) T();
  }
  ~PinnedBuffer() { cudaFreeHost(data_); }
  PinnedBuffer(const PinnedBuffer&) = delete;
  PinnedBuffer& operator=(const PinnedBuffer&) = delete;

  T* data() { return data_; }
  T& operator[](int64_t i) { return data_[i]; }
  const T& operator[](int64_t i) const { return data_[i]; }

  // Enqueues the copy of entries first .. first + count - 1 to the same place of `device`.
  void send(T* device, int64_t first, int64_t count, cudaStream_t stream) {
    check(cudaMemcpyAsync(device + first, data_ + first, count * sizeof(T), cudaMemcpyHostToDevice,
                          stream),
          "cudaMemcpyAsync");
  }

 private:
  T* data_ = nullptr;
};

}  // namespace posattn::cuda
