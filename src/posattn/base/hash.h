// FNV-1a: the same on every machine and in every version. It tells texts apart; it keeps nobody
// from making another text of the same hash.
#pragma once

#include <cstdint>
#include <string_view>

namespace posattn {

// Goes on from `hash`, that of the text before.
constexpr uint64_t hash_of(std::string_view text, uint64_t hash = 0xcbf29ce484222325U) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

}  // namespace posattn
