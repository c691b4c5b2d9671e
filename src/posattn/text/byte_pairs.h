// Merging by rank: as long as two neighbours can be merged, the pair of the lowest rank is, the
// leftmost first.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace posattn {

class BytePairs {
 public:
  // The next rank. No pair twice, and no result twice; left and right are tokens that no merge
  // makes or that an earlier one made. So a merge never makes a pair of a lower rank possible, and
  // the order of merging is that of the ranks.
  void add(int32_t left, int32_t right, int32_t result);

  // n log n in the number of tokens.
  void merge(std::vector<int32_t>& tokens) const;

 private:
  struct Merge {
    int32_t rank, result;
  };
  const Merge* find(int32_t left, int32_t right) const;

  std::unordered_map<uint64_t, Merge> merges_;  // by both tokens
};

}  // namespace posattn
