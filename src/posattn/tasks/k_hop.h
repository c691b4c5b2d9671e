// k-hop induction heads (Sanford, Hsu, Telgarsky, arXiv 2402.09268): from a place in a word, look
// back for the last time the same letter stood there, take the letter after it, and do that k
// times.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace posattn {

// find1(i) of every place, counted from 0: the largest j <= i with word[j - 1] == word[i], or -1
// where there is none.
std::vector<int32_t> hop_places(std::span<const int32_t> word);

// hop_k of every place: word[find1(find1(... i))], k times from the place reached, or -1 where some
// step leads nowhere. hop_0 is the word itself.
std::vector<int32_t> k_hop(std::span<const int32_t> word, int k);

}  // namespace posattn
