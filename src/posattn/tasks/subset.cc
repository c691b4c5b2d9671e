#include "posattn/tasks/subset.h"

namespace posattn {

// Each place is chosen with probability (left to choose) / (places left).
std::vector<uint8_t> random_subset(RandomStream& random, int size, int count) {
  std::vector<uint8_t> chosen(size);
  for (int i = 0; i < size && count > 0; ++i) {
    if (static_cast<int>(random.below(static_cast<uint32_t>(size - i))) >= count) continue;
    chosen[i] = 1;
    --count;
  }
  return chosen;
}

}  // namespace posattn
