#include "posattn/bounds/certificate/noise.h"

#include <cmath>
#include <numbers>

namespace posattn::bounds {

void fill_normal(RandomStream& random, std::span<float> numbers) {
  constexpr float turn = 2 * std::numbers::pi_v<float>;
  for (size_t k = 0; k < numbers.size(); k += 2) {
    // 32 bits in (0, 1]: tails up to 6.6 deviations.
    const float u = (static_cast<float>(random.next()) + 1.0F) * 0x1p-32F;
    const float angle = turn * random.uniform();
    const float radius = std::sqrt(-2 * std::log(u));
    numbers[k] = radius * std::cos(angle);
    if (k + 1 < numbers.size()) numbers[k + 1] = radius * std::sin(angle);
  }
}

}  // namespace posattn::bounds
