#include "posattn/base/hash.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace posattn {
namespace {

std::vector<std::byte> numbered(size_t size) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = std::byte(i * 37 % 256);
  return bytes;
}

// Files keep these values, so they are the same in every version.
TEST(Hash, IsPinned) {
  EXPECT_EQ(hash_of(""), 0xcbf29ce484222325U);
  EXPECT_EQ(hash_of("posattn"), 0xbf6d00de20119f5aU);
  EXPECT_EQ(hash_of_bytes({}), 0xd1c2c0ae1e672cf5U);
  EXPECT_EQ(hash_of_bytes(numbered(1000)), 0x608f98580f3c6e20U);
}

TEST(Hash, EveryBitAndTheLengthCount) {
  std::set<uint64_t> seen;
  for (size_t size = 0; size < 30; ++size) {
    std::vector<std::byte> bytes = numbered(size);
    EXPECT_TRUE(seen.insert(hash_of_bytes(bytes)).second) << size;
    for (size_t bit = 0; bit < 8 * size; ++bit) {
      bytes[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
      EXPECT_TRUE(seen.insert(hash_of_bytes(bytes)).second) << size << " " << bit;
      bytes[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    }
  }
}

TEST(Hash, PartsDoNotRunTogether) {
  const auto of = [](const char* a, const char* b) {
    return hash_of_part(b, hash_of_part(a, hash_of("")));
  };
  EXPECT_NE(of("ab", "c"), of("a", "bc"));
  EXPECT_NE(of("", "abc"), of("abc", ""));
}

}  // namespace
}  // namespace posattn
