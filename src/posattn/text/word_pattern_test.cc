#include "posattn/text/word_pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "posattn/base/error.h"

namespace posattn {
namespace {

using testing::ElementsAre;

TEST(WordPattern, WordsAndNumbersTakeTheSpaceBeforeThem) {
  const WordPattern pattern;
  EXPECT_THAT(pattern.split("Cat A 003.50, CatB"),
              ElementsAre("Cat", " A", " 003", ".", "50", ",", " CatB"));
  EXPECT_THAT(pattern.split("don't we'll I'm x'S"),
              ElementsAre("don", "'t", " we", "'ll", " I", "'m", " x", "'", "S"));
}

TEST(WordPattern, TheLastSpaceOfARunBelongsToTheWord) {
  const WordPattern pattern;
  EXPECT_THAT(pattern.split("a   b  "), ElementsAre("a", "  ", " b", "  "));
  EXPECT_THAT(pattern.split("a\n\nb"), ElementsAre("a", "\n", "\n", "b"));
  EXPECT_THAT(pattern.split(""), ElementsAre());
}

TEST(WordPattern, ClassesAreThoseOfUnicode) {
  const WordPattern pattern;
  // Letters with accents, Greek; Arabic digits; a no-break space; a sign.
  EXPECT_THAT(pattern.split("\u00e9t\u00e9 \u03b1\u03b2\u0663\u0664\u00a0\u20ac"),
              ElementsAre("\u00e9t\u00e9", " \u03b1\u03b2", "\u0663\u0664", "\u00a0", "\u20ac"));
  // The Mongolian vowel separator is no white space, an ideographic space is.
  EXPECT_THAT(pattern.split("a\u180eb\u3000c"), ElementsAre("a", "\u180e", "b", "\u3000", "c"));
}

TEST(WordPattern, TextMustBeUtf8) { EXPECT_THROW(WordPattern().split("a\xff"), Error); }

TEST(WordPattern, LongPiecesAreNoProblem) {
  const std::string letters(3'000'000, 'a'), spaces(3'000'000, ' ');
  EXPECT_EQ(WordPattern().split(letters).size(), 1U);
  EXPECT_EQ(WordPattern().split(spaces + "b").size(), 2U);
}

}  // namespace
}  // namespace posattn
