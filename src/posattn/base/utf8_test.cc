#include <gtest/gtest.h>

#include "posattn/base/text.h"

namespace posattn {
namespace {

TEST(Utf8, SizesOfCharacters) {
  EXPECT_EQ(utf8_size("a"), 1u);
  EXPECT_EQ(utf8_size("\u00e9!"), 2u);
  EXPECT_EQ(utf8_size("\u2192"), 3u);
  EXPECT_EQ(utf8_size("\U0001F600"), 4u);
}

TEST(Utf8, BrokenCharacters) {
  // A byte that never occurs, one cut off, an overlong slash, a surrogate, beyond U+10FFFF, a byte
  // that only continues.
  for (const char* text :
       {"\xff", "\xe2\x82", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\x80"}) {
    EXPECT_EQ(utf8_size(text), 0u) << text;
  }
}

TEST(Utf8, WhereTextBreaks) {
  EXPECT_EQ(find_broken_utf8("2 ab\u00e9"), std::string_view::npos);
  EXPECT_EQ(find_broken_utf8("a\u00e9\xe9z"), 3u);
}

}  // namespace
}  // namespace posattn
