#include "posattn/tasks/k_hop.h"

#include <map>

namespace posattn {

std::vector<int32_t> hop_places(std::span<const int32_t> word) {
  std::map<int32_t, int32_t> last;  // where each letter stood last
  std::vector<int32_t> places;
  for (size_t i = 0; i < word.size(); ++i) {
    const auto found = last.find(word[i]);
    places.push_back(found == last.end() ? -1 : found->second + 1);
    last[word[i]] = static_cast<int32_t>(i);
  }
  return places;
}

std::vector<int32_t> k_hop(std::span<const int32_t> word, int k) {
  const std::vector<int32_t> places = hop_places(word);
  std::vector<int32_t> letters;
  for (size_t i = 0; i < word.size(); ++i) {
    auto at = static_cast<int32_t>(i);
    for (int hop = 0; hop < k && at >= 0; ++hop) at = places[at];
    letters.push_back(at < 0 ? -1 : word[at]);
  }
  return letters;
}

}  // namespace posattn
