// Host memory that the GPU reads and writes by itself, so that a copy does not stop the host. For
// .cu files.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <new>

#include "posattn/kernels/cuda/runtime.h"

namespace posattn::cuda {

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
