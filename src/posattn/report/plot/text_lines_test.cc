#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "posattn/report/markup.h"

namespace posattn {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(TextLines, BreakAtSpaces) {
  EXPECT_THAT(wrapped("one two three", 10, text_width("one two", 10)),
              ElementsAre("one two", "three"));
  EXPECT_THAT(wrapped("  one   two ", 10, 1000), ElementsAre("one two"));
  EXPECT_THAT(wrapped("a longword b", 10, text_width("abc", 10)),
              ElementsAre("a", "longword", "b"));
  EXPECT_THAT(wrapped("", 10, 100), IsEmpty());
}

TEST(TextLines, LettersCountNotBytes) {
  EXPECT_EQ(text_width("c\u00b2", 12), text_width("c2", 12));
}

}  // namespace
}  // namespace posattn
