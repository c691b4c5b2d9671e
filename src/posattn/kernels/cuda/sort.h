// Sorts pairs of a key and a value in device memory. For .cu files.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "posattn/kernels/cuda/runtime.h"

namespace posattn::cuda {

class PairSorter {
 public:
  explicit PairSorter(int64_t most_items);

  // Enqueues a stable sort, ascending by the lowest `key_bits` bits of the keys. Outputs may not
  // overlap inputs; neither memory nor the host's attention is asked for, so graphs can hold it.
  void sort(const uint64_t* keys_in, uint64_t* keys_out, const uint32_t* values_in,
            uint32_t* values_out, int64_t count, int key_bits, cudaStream_t stream);

 private:
  DeviceBuffer<char> workspace_;
};

}  // namespace posattn::cuda
