// What a card has room for, which engines and kernels ask before they are chosen. The instructions
// are the same everywhere from compute capability 8.0 on: what differs is a block's shared memory.
// No CUDA types: who chooses an engine need not be a .cu file.
#pragma once

#include <cstdint>

namespace posattn::cuda {

struct DeviceLimits {
  int major = 0, minor = 0;  // compute capability
  int64_t shared_bytes = 0;  // most of a block
};

// The compute capabilities that the kernels are written for, from which newer ones differ in speed
// alone; `tried` where the tests ran on such a card.
struct KnownCard {
  DeviceLimits limits;
  const char* examples;
  bool tried;
};
inline constexpr KnownCard known_cards[] = {
    {{8, 0, 163 * 1024}, "A100", false},         {{8, 6, 99 * 1024}, "RTX 3090, A40", false},
    {{8, 9, 99 * 1024}, "RTX 4090, L40", false}, {{9, 0, 227 * 1024}, "H100, H200", true},
    {{10, 0, 227 * 1024}, "B200", false},
};

// Whether the tests ran on a card of this compute capability.
constexpr bool tried_on_hardware(int major, int minor) {
  for (const KnownCard& card : known_cards) {
    if (card.limits.major == major && card.limits.minor == minor) return card.tried;
  }
  return false;
}

// The limits of the device in use. Only the CUDA build has this function.
DeviceLimits device_limits();

}  // namespace posattn::cuda
