// FNV-1a: the same on every machine and in every version. It tells texts apart but is not
// cryptographic.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace posattn {

// Continues from `hash`, the hash of the text before.
constexpr uint64_t hash_of(std::string_view text, uint64_t hash = 0xcbf29ce484222325U) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

// Hashes the length first, so that no two lists of texts give the same bytes.
inline uint64_t hash_of_part(std::string_view text, uint64_t hash) {
  return hash_of(text, hash_of(std::to_string(text.size()) + ':', hash));
}

// Hashes whole files several times as fast: eight parts, each of every eighth byte, keep the
// processor busy. It is another hash than hash_of of the same text.
constexpr uint64_t hash_of_bytes(std::span<const std::byte> bytes,
                                 uint64_t hash = hash_of(std::string_view())) {
  constexpr size_t count = 8;
  std::array<uint64_t, count> parts = {0, 1, 2, 3, 4, 5, 6, 7};
  for (uint64_t& part : parts) part ^= hash;
  const auto take = [&](size_t part, std::byte byte) {
    parts[part] = (parts[part] ^ static_cast<unsigned char>(byte)) * 0x100000001b3U;
  };
  size_t at = 0;
  for (; at + count <= bytes.size(); at += count) {
    for (size_t part = 0; part < count; ++part) take(part, bytes[at + part]);
  }
  for (; at < bytes.size(); ++at) take(at % count, bytes[at]);
  for (const uint64_t part : parts) {
    for (size_t byte = 0; byte < sizeof part; ++byte) {
      hash = (hash ^ ((part >> (8 * byte)) & 0xff)) * 0x100000001b3U;
    }
  }
  return hash;
}

}  // namespace posattn
