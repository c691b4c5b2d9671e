#include <cub/device/device_radix_sort.cuh>

#include "posattn/kernels/cuda/sort.h"

namespace posattn::cuda {
namespace {

size_t workspace_bytes(int64_t items) {
  size_t bytes = 0;
  const uint64_t* keys_in = nullptr;
  uint64_t* keys_out = nullptr;
  const uint32_t* values_in = nullptr;
  uint32_t* values_out = nullptr;
  check(cub::DeviceRadixSort::SortPairs(nullptr, bytes, keys_in, keys_out, values_in, values_out,
                                        items, 0, 64),
        "cub::DeviceRadixSort::SortPairs");
  return bytes;
}

}  // namespace

PairSorter::PairSorter(int64_t most_items)
    : workspace_(static_cast<int64_t>(workspace_bytes(most_items))) {}

void PairSorter::sort(const uint64_t* keys_in, uint64_t* keys_out, const uint32_t* values_in,
                      uint32_t* values_out, int64_t count, int key_bits, cudaStream_t stream) {
  size_t bytes = static_cast<size_t>(workspace_.size());
  check(cub::DeviceRadixSort::SortPairs(workspace_.data(), bytes, keys_in, keys_out, values_in,
                                        values_out, count, 0, key_bits, stream),
        "cub::DeviceRadixSort::SortPairs");
}

}  // namespace posattn::cuda
