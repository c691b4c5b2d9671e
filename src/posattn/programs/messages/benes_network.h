// A Benes network: fixed wires and switches that carry any permutation of N ports in
// 2 ceil(log2 N) - 1 stages. Pairs of neighbours meet in the first and last stage; between them the
// ports of even and of odd index are networks of their own. For an odd N the last port has no
// neighbour and belongs to the even, larger half (Chang and Melhem, "Arbitrary size Benes
// networks", 1997). How switches are set depends on the whole permutation: the network does not
// route itself.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace posattn {

int benes_stages(int ports);

// Whom each port meets in each stage, itself where it meets nobody: [stages][ports].
std::vector<std::vector<int32_t>> benes_partners(int ports);

// Whether each port takes its partner's word, so that the word of port i arrives at
// permutation[i]: [stages][ports]. By looping; throws std::logic_error for what is no permutation.
std::vector<std::vector<bool>> benes_switches(std::span<const int32_t> permutation);

// Batcher's bitonic sorting network is normalised here: the first step of a merge is mirrored and
// the minimum always goes to the lower place, so that for any number of places a comparator whose
// partner is missing is left out. With k = ceil(log2 places) it has k (k + 1) / 2 stages.

// Whom each place meets in each stage, itself where it meets nobody: [stages][places].
std::vector<std::vector<int32_t>> sorting_partners(int places);

}  // namespace posattn
