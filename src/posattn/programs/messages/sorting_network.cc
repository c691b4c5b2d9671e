#include "posattn/programs/messages/sorting_network.h"

namespace posattn {

std::vector<std::vector<int32_t>> sorting_partners(int places) {
  std::vector<std::vector<int32_t>> stages;
  for (int block = 2; block < 2 * places; block *= 2) {
    for (int stride = block / 2; stride >= 1; stride /= 2) {
      std::vector<int32_t>& stage = stages.emplace_back(places);
      for (int i = 0; i < places; ++i) {
        const int partner = i ^ (stride == block / 2 ? block - 1 : stride);
        stage[i] = static_cast<int32_t>(partner < places ? partner : i);
      }
    }
  }
  return stages;
}

}  // namespace posattn
