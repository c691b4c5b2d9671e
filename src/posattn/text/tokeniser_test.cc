#include "posattn/text/tokeniser.h"

#include <gtest/gtest.h>

#include "posattn/base/error.h"

namespace posattn {
namespace {

TEST(ByteTokeniser, ATokenForEachByte) {
  const ByteTokeniser tokeniser;
  const std::string text = "a\n\xc3\xa9";
  EXPECT_EQ(tokeniser.encode(text), (std::vector<int32_t>{97, 10, 0xc3, 0xa9}));
  EXPECT_EQ(tokeniser.decode(tokeniser.encode(text)), text);
  EXPECT_EQ(tokeniser.decode(std::vector<int32_t>{104, 105, tokeniser.end()}), "hi");
}

TEST(CheckUtf8, AcceptsTheEndsOfEveryLength) {
  for (const std::string text :
       {"", "\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
        "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_NO_THROW(check_utf8(text, "text"));
  }
  EXPECT_NO_THROW(check_utf8(std::string(1, '\0'), "text"));
}

TEST(CheckUtf8, NamesTheFirstByteThatIsNone) {
  // A byte in the middle, one cut off, longer than needed, half of a pair, above U+10FFFF.
  for (const std::string bad : {"\x80", "\xc3", "\xc0\x80", "\xe0\x80\x80", "\xe2\x82",
                                "\xed\xa0\x80", "\xf0\x80\x80\x80", "\xf4\x90\x80\x80", "\xff"}) {
    try {
      check_utf8("ab" + bad, "notes.txt");
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::data);
      EXPECT_TRUE(error.problem().starts_with("notes.txt: byte 3 (0x")) << error.problem();
    }
  }
}

}  // namespace
}  // namespace posattn
