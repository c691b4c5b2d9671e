#include <gtest/gtest.h>

#include <set>

#include "posattn/text/byte_pair_tokeniser.h"

namespace posattn {
namespace {

TEST(ByteCharacters, PrintableBytesStandForThemselves) {
  EXPECT_EQ(bytes_to_characters("Az!~"), "Az!~");
  EXPECT_EQ(bytes_to_characters("\xff"), "\xc3\xbf");                // U+00FF
  EXPECT_EQ(bytes_to_characters(std::string(1, '\0')), "\xc4\x80");  // U+0100
  EXPECT_EQ(bytes_to_characters(" "), "\xc4\xa0");                   // U+0120
  EXPECT_EQ(bytes_to_characters("\n"), "\xc4\x8a");                  // U+010A
  EXPECT_EQ(bytes_to_characters("\xad"), "\xc5\x83");                // U+0143, the last
}

TEST(ByteCharacters, EveryByteHasACharacterOfItsOwn) {
  std::set<std::string> seen;
  for (int byte = 0; byte < 256; ++byte) {
    const std::string one(1, static_cast<char>(byte)), character = bytes_to_characters(one);
    EXPECT_TRUE(seen.insert(character).second);
    EXPECT_EQ(characters_to_bytes(character), one);
  }
}

TEST(ByteCharacters, OtherCharactersStandForNothing) {
  for (const char* text : {" ", "\n", "\x7f", "\xc2\xad", "\xc5\x84", "\xe2\x82\xac", "\xc4"}) {
    EXPECT_EQ(characters_to_bytes(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace posattn
