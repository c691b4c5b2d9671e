#include "posattn/text/byte_pairs.h"

#include <functional>
#include <queue>
#include <tuple>

namespace posattn {
namespace {

uint64_t key_of(int32_t left, int32_t right) {
  return (uint64_t{static_cast<uint32_t>(left)} << 32) | static_cast<uint32_t>(right);
}

constexpr int32_t nothing = -1;

}  // namespace

void BytePairs::add(int32_t left, int32_t right, int32_t result) {
  merges_.emplace(key_of(left, right), Merge{static_cast<int32_t>(merges_.size()), result});
}

const BytePairs::Merge* BytePairs::find(int32_t left, int32_t right) const {
  const auto found = merges_.find(key_of(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

void BytePairs::merge(std::vector<int32_t>& tokens) const {
  // A list of places: a merge keeps the left place and takes the right one out.
  const auto count = static_cast<int32_t>(tokens.size());
  std::vector<int32_t> before(tokens.size()), behind(tokens.size());
  for (int32_t i = 0; i < count; ++i) {
    before[i] = i - 1;
    behind[i] = i + 1 < count ? i + 1 : nothing;
  }
  using Candidate = std::tuple<int32_t, int32_t, int32_t>;  // rank, place, result
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> candidates;
  const auto consider = [&](int32_t place) {
    if (place == nothing || behind[place] == nothing) return;
    const Merge* merge = find(tokens[place], tokens[behind[place]]);
    if (merge != nullptr) candidates.emplace(merge->rank, place, merge->result);
  };
  for (int32_t i = 0; i < count; ++i) consider(i);
  while (!candidates.empty()) {
    const auto [rank, place, result] = candidates.top();
    candidates.pop();
    // The pair may have been merged since it was found.
    const int32_t right = behind[place];
    if (tokens[place] == nothing || right == nothing) continue;
    const Merge* merge = find(tokens[place], tokens[right]);
    if (merge == nullptr || merge->rank != rank) continue;
    tokens[place] = result;
    tokens[right] = nothing;
    behind[place] = behind[right];
    if (behind[place] != nothing) before[behind[place]] = place;
    consider(before[place]);
    consider(place);
  }
  std::erase(tokens, nothing);
}

}  // namespace posattn
