// k-hop induction heads (Sanford, Hsu, Telgarsky, arXiv 2402.09268): from a place in a word, look
// back for the last time the same letter stood there, take the letter after it, and do that k
// times.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace posattn {

// find1(i) of every place, counted from 0: the largest j <= i with word[j - 1] == word[i], or -1
// where there is none.
std::vector<int32_t> hop_places(std::span<const int32_t> word);

// hop_k of every place: word[find1(find1(... i))], k times from the place reached, or -1 where some
// step leads nowhere. hop_0 is the word itself.
std::vector<int32_t> k_hop(std::span<const int32_t> word, int k);

// A k-hop task's numbers, and what its tokens are: 0 .. most_hops say k, then the letters of
// training, then as many others that training never shows, then the sign for undefined, which is an
// answer only.
struct KHopSetting {
  int most_hops, letters;
  int vocabulary;      // at least most_hops + 1 + 2 letters + 1
  bool ask_always;     // undefined places count in training too
  int least_hops = 0;  // in training

  int letter(int index, bool unseen) const {
    return most_hops + 1 + index + (unseen ? letters : 0);
  }
  int undefined() const { return most_hops + 1 + 2 * letters; }
};

// The setting of a k-hop task by its name; nullptr for another task.
const KHopSetting* k_hop_setting(std::string_view task);

}  // namespace posattn
