#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "posattn/programs/language/term_parser.h"

namespace posattn::language {
namespace {

const Source source("t.par");

std::string spelled(std::string_view text) {
  std::string result;
  for (const Token& token : tokenize(text, source, {})) {
    switch (token.kind) {
      case Token::Kind::newline:
        result += "; ";
        break;
      case Token::Kind::indent:
        result += "{ ";
        break;
      case Token::Kind::dedent:
        result += "} ";
        break;
      case Token::Kind::end:
        break;
      default:
        result += token.text + " ";
    }
  }
  return result;
}

std::string problem(std::string_view text) {
  try {
    tokenize(text, source, {});
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::configuration);
    return error.problem();
  }
  return "";
}

TEST(Lexer, IndentationMakesBlocks) {
  EXPECT_EQ(spelled("for k:\n  a\n\n   # comment\n  if b:\n      c\nd"),
            "for k : ; { a ; if b : ; { c ; } } d ; ");
  EXPECT_EQ(spelled("a:\r\n  b\r\n"), "a : ; { b ; } ");
  EXPECT_EQ(spelled(""), "");
  EXPECT_EQ(spelled("# only this"), "");
}

TEST(Lexer, RangesAreNoDecimals) {
  EXPECT_EQ(spelled("0..n-1 1.5..2 1e3 2.e-1 i>=3 ..."),
            "0 .. n - 1 1.5 .. 2 1e3 2.e-1 i >= 3 ... ; ");
  const std::vector<Token> tokens = tokenize("12 2.5 3e2", source, {});
  EXPECT_TRUE(tokens[0].whole);
  EXPECT_EQ(tokens[1].number, 2.5);
  EXPECT_EQ(tokens[2].number, 300);
  EXPECT_FALSE(tokens[2].whole);
}

TEST(Lexer, LinesGoOnInsideBrackets) {
  EXPECT_EQ(spelled("table w = [1,\n   2]\nx"), "table w = [ 1 , 2 ] ; x ; ");
}

TEST(Lexer, SaysWhereAndWhat) {
  EXPECT_EQ(problem("a\n  $"), "t.par:2:3: the character '$'");
  EXPECT_EQ(problem("a:\n\tb"), "t.par:2:1: a tab in the indentation");
  EXPECT_EQ(problem("a:\n    b\n  c"), "t.par:3:3: a line indented by 2 spaces");
  EXPECT_EQ(problem("x = 99999999999999999"), "t.par:1:5: the number 99999999999999999");
  EXPECT_THAT(problem("x = 1e999"), testing::HasSubstr("1e999"));
  EXPECT_EQ(problem("\xc3"), "t.par:1:1: the byte 0xc3");
  EXPECT_EQ(problem("a = 1\nb = max(a, 0\noutput b\n"), "t.par:2:8: '(' is not closed");
  EXPECT_EQ(problem("table w = [[1, 2],\n  [3, 4]\n"), "t.par:1:11: '[' is not closed");
  EXPECT_THAT(problem(std::string(2 << 20, ' ')), testing::HasSubstr("bytes"));
}

}  // namespace
}  // namespace posattn::language
