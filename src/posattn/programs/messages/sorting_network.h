// Batcher's bitonic sorting network, normalised: the first step of a merge is mirrored and the
// minimum always goes to the lower place, so that for any number of places a comparator whose
// partner is missing is left out. With k = ceil(log2 places) it has k (k + 1) / 2 stages.
#pragma once

#include <cstdint>
#include <vector>

namespace posattn {

// Whom each place meets in each stage, itself where it meets nobody: [stages][places].
std::vector<std::vector<int32_t>> sorting_partners(int places);

}  // namespace posattn
