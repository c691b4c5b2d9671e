// Runs CUDA kernels on the host, so that a machine without a GPU can test them: include/ holds a
// <cuda_runtime.h> and a primitives.cuh that shadow the real ones. Every CUDA thread of a block is
// a fiber; a block runs in one operating-system thread, blocks may run at the same time.
//
// By hand, from the repository's root, one line (add the sources that are under test):
//   g++ -std=c++20 -O2 -g -fopenmp -Wall -Wextra -Wpedantic -Wshadow -Wno-unknown-pragmas
//       -Itests/emulator/include -Isrc -x c++ KERNELS.cu X_cuda_test.cc
//       tests/emulator/{emulator,context,runtime,sort_emulated}.cc
//       src/posattn/kernels/cuda/{runtime,graph}.cu src/posattn/base/error.cc
//       -x none -lgmock -lgtest -lgtest_main -lfmt -o /tmp/x_test
//
// What it makes visible:
//   - reads of memory that nobody wrote: device and dynamic shared memory start as NaN;
//   - reads of an asynchronous copy before wait_copies, and copies into what others still read: the
//     destination is NaN until the wait;
//   - missing barriers: threads run one after the other until they have to wait, from the first to
//     the last in even blocks, from the last to the first in odd blocks;
//   - work of a second stream that nobody waits for: in a captured graph it comes as late as it
//   may;
//   - barriers and warp collectives that not all threads reach: the program ends with a message;
//   - with the address sanitizer: accesses beyond an allocation or the dynamic shared memory.
// Static __shared__ arrays keep what the previous block left there.
#pragma once

#include <cstddef>
#include <functional>
#include <type_traits>

#include "posattn/kernels/cuda/device_limits.h"

namespace posattn::emulator {

// While it lives, the emulated device has the compute capability and the shared memory of another
// card; otherwise those of an H200. One at a time.
class PretendedCard {
 public:
  explicit PretendedCard(const cuda::DeviceLimits& limits);
  ~PretendedCard();
  PretendedCard(const PretendedCard&) = delete;
  PretendedCard& operator=(const PretendedCard&) = delete;
};

struct Dimensions {
  unsigned x = 1, y = 1, z = 1;
};

// Calls `thread` once for every thread of the grid, with threadIdx and its kin set.
void run_grid(Dimensions grid, Dimensions block, size_t shared_bytes,
              const std::function<void()>& thread);

// What follows is called by kernels.

char* dynamic_shared();

enum class Collective { none, syncwarp, shuffle, mma, matrices };

void meet_block();                // __syncthreads
void meet_warp(Collective kind);  // all lanes of the warp, for the same purpose
int lane_index();
int warp_lanes();  // 32, less in a last warp that is not full

constexpr size_t largest_exchange = 32;  // bytes of a lane
void* exchange_slots();                  // of the warp's next collective

// Every lane gives a value and gets the values of all lanes. They stay until the lane's next but
// one collective.
template <class T>
const T* exchange(Collective kind, const T& mine) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= largest_exchange);
  T* slots = static_cast<T*>(exchange_slots());
  slots[lane_index()] = mine;
  meet_warp(kind);
  return slots;
}

// The first `present` bytes of `size`; the rest becomes zero.
void start_copy(void* shared, const void* global, int size = 16, int present = 16);
void commit_copies();
void wait_copies(int pending);

// Ends the program: "CUDA emulator: block (0, 1, 0), thread (3, 0, 0): <message>".
[[noreturn]] void fail(const char* message);

}  // namespace posattn::emulator
