// Takes the place of kernels/cuda/sort.cu, which is a library of NVIDIA's.
#include <algorithm>
#include <numeric>
#include <vector>

#include "posattn/kernels/cuda/sort.h"

namespace posattn::cuda {

PairSorter::PairSorter(int64_t most_items) : workspace_(most_items) {}

void PairSorter::sort(const uint64_t* keys_in, uint64_t* keys_out, const uint32_t* values_in,
                      uint32_t* values_out, int64_t count, int key_bits, cudaStream_t stream) {
  if (count > workspace_.size()) check(cudaErrorInvalidValue, "PairSorter::sort");
  emulator::enqueue(stream, [=] {
    const uint64_t mask = key_bits == 64 ? ~uint64_t{0} : (uint64_t{1} << key_bits) - 1;
    std::vector<int64_t> order(count);
    std::iota(order.begin(), order.end(), int64_t{0});
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return (keys_in[a] & mask) < (keys_in[b] & mask);
    });
    for (int64_t i = 0; i < count; ++i) {
      keys_out[i] = keys_in[order[i]];
      values_out[i] = values_in[order[i]];
    }
  });
}

}  // namespace posattn::cuda
