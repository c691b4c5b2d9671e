// Attention that does not depend on the data, applied without its matrix, for inference over many
// nodes: where scores depend on distances by Fourier transforms (relative_mixing.h), where the
// matrix has a low rank by its factors (factored_mixing.h). Both are as exact as rounding to float:
// they are chosen only where their bound on |y - A x| is below `mixing_tolerance` max |x|.
#pragma once

#include <cstdint>

namespace posattn::engine {

class Mixing {
 public:
  virtual ~Mixing() = default;

  // y [n, width] = A x of one head.
  virtual void mix(int64_t width, const float* x, int64_t x_stride, float* y,
                   int64_t y_stride) const = 0;
};

// Rows of A sum to one, so this is 16 units in the last place of the largest x: less than what the
// float sums over n >= 256 nodes may round.
constexpr double mixing_tolerance = 0x1p-20;

}  // namespace posattn::engine
