#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "posattn/programs/language/text_program_test.h"

namespace posattn {
namespace {

using testing::HasSubstr;

TEST(LanguageErrors, Messages) {
  EXPECT_THAT(message(input + "send y = x to x\n"), HasSubstr("a destination of type real"));
  EXPECT_THAT(message(input + "send y = x to 0.5 * i\n"), HasSubstr("a destination of type real"));
  EXPECT_THAT(message(input + "send y = x\n"), HasSubstr("'to' and the destination"));
  EXPECT_THAT(message(whole_input + "if x > 2:\n  send y = x to x\n"),
              HasSubstr("a message inside an 'if'"));
  EXPECT_THAT(message("word x : int[0..9] = input permuted\n"), HasSubstr("permutation"));
  EXPECT_THAT(message("word x : int[0..1] = input permutation\n"), HasSubstr("int[0..n - 1]"));
}

TEST(LanguageErrors, WhatCannotBeExactIsRefusedWithTheReason) {
  EXPECT_THAT(message(input + "word b : bit = x > 1\n"),
              HasSubstr("t.par:2:18: a comparison of real values"));
  EXPECT_THAT(message(input + "x = x * x\n"), HasSubstr("t.par:2:7: a product of two words"));
  EXPECT_THAT(message(input + "x = 1 / x\n"), HasSubstr("a division by a word"));
  EXPECT_THAT(message(input + "x = x % 2\n"), HasSubstr("t.par:2:7: % of a real value"));
  EXPECT_THAT(message(input + "x = x xor 2\n"), HasSubstr("'xor' of a value of type real"));
  EXPECT_THAT(message("word k : int[-1..9] = input\nk = k xor 2\n"),
              HasSubstr("integers that are never below 0"));
  EXPECT_THAT(message(whole_input + "x = x % x\n"), HasSubstr("a division by a word"));
  EXPECT_THAT(message(whole_input + "x = x % 0\n"), HasSubstr("a division by zero"));
  EXPECT_THAT(message(whole_input + "x = x % (-2)\n"), HasSubstr("% by -2"));
  EXPECT_THAT(message(whole_input + "x = x % 2.5\n"), HasSubstr("% by 2.5"));
  EXPECT_THAT(message(whole_input + "x = (n < 2) * x\n"), HasSubstr("a condition as factor"));
  EXPECT_THAT(message("word k : int[0..99999] = input\noutput k / 2\n"),
              HasSubstr("50000 values of a quotient of int[0..99999]"));
  EXPECT_THAT(message(input + "x = sqrt(x)\n"), HasSubstr("sqrt of a word"));
  EXPECT_THAT(message(input + "x = choose(x, 1, 2)\n"),
              HasSubstr("a selection by a value of type real"));
  EXPECT_THAT(message(input + "x = i * x\n"), HasSubstr("a factor that depends on the processor"));
  EXPECT_THAT(
      message(whole_input + "x = x + 1\n"),
      HasSubstr("t.par:2:1: a value of type int[1..10] for word 'x'\n  expected int[0..9]"));
  EXPECT_THAT(message(whole_input + "x = x / 2.0\n"),
              HasSubstr("a value of type real for word 'x'"));
  EXPECT_THAT(message(input + "word k : int = 0\nk = x\n"), HasSubstr("a real value for word 'k'"));
  EXPECT_THAT(message(input + "word k : int = 0.5\n"), HasSubstr("word 'k' starts with a real"));
  EXPECT_THAT(message("word k : int = input\n"), HasSubstr("an input of type int"));
  EXPECT_THAT(message(whole_input + "word b : bit = not x\n"), HasSubstr("'not' of a value"));
  EXPECT_THAT(message(input + "receive y = x from x\n"), HasSubstr("the word 'x'"));
  EXPECT_THAT(message(input + "receive y = sum of 1 / n * x over j\n"),
              HasSubstr("t.par:2:22: 1 / 4 of whole numbers rounds down to 0"));
}

// Whole numbers that not even the interpreter holds are reals: no comparison of them is decided
// beforehand by bounds that are rounded.
TEST(LanguageErrors, WholeNumbersBeyond53Bits) {
  const std::string large =
      whole_input + "word b : bit = (x + 1) * power(2.0, {}) >= x\noutput b\n";
  EXPECT_EQ(message(fmt::format(fmt::runtime(large), 49)), "");
  EXPECT_THAT(message(fmt::format(fmt::runtime(large), 50)),
              HasSubstr("a comparison of real values"));
  EXPECT_THAT(message(whole_input + "word b : bit = (x + 1) * power(2.0, 61) >= (x + 1) * "
                                    "power(2.0, 62)\noutput b\n"),
              HasSubstr("a comparison of real values"));
  EXPECT_THAT(message(whole_input + "word k : int = x\nfor j in 1 .. 60:\n  k = 2 * k\noutput k\n"),
              HasSubstr("a real value for word 'k'"));
  EXPECT_EQ(run(whole_input + "word r : real = x * power(2.0, 61)\noutput r\n", {0, 3}),
            (Values{0, 0x3p61}));
}

TEST(LanguageErrors, NamesAndPlaces) {
  EXPECT_THAT(message(input + "x = y\n"), HasSubstr("t.par:2:5: unknown name 'y'"));
  EXPECT_THAT(message(input + "word total : real\nx = totel\n"), HasSubstr("did you mean 'total'"));
  EXPECT_THAT(message(input + "y = x\n"), HasSubstr("unknown word 'y'"));
  EXPECT_THAT(message(input + "word x : real\n"), HasSubstr("'x' has a meaning already"));
  EXPECT_THAT(message(input + "let x = 3\n"), HasSubstr("'x' has a meaning already"));
  EXPECT_THAT(message(input + "let k = x\n"), HasSubstr("a word in 'let'"));
  EXPECT_THAT(message(input + "scan(x)\n"), HasSubstr("unknown procedure 'scan'"));
  EXPECT_THAT(message(input + "word a[3] : real\nx = a[3]\n"), HasSubstr("an index from 0 to 2"));
  EXPECT_THAT(message(input + "word a[3] : real\nx = a[i]\n"),
              HasSubstr("depends on the processor"));
  EXPECT_THAT(message(input + "word a[3] : real\nx = a\n"), HasSubstr("the whole array 'a'"));
  EXPECT_THAT(message(input + "x = max(x)\n"), HasSubstr("max of one word"));
  EXPECT_THAT(message(input + "receive y = x + 1 from i - 1\n"), HasSubstr("give it a name first"));
  EXPECT_THAT(message(input + "receive y = min of 2 * x over j\n"),
              HasSubstr("give it a name first"));
  EXPECT_THAT(message(input + "edges g = (0, 1, 2), (0, 1, 3)\n"),
              HasSubstr("t.par:2:23: a second edge from 0 to 1"));
  EXPECT_THAT(message(input + "edges g = (0, 4, 2)\n"),
              HasSubstr("t.par:2:15: an edge of node 4\n  expected nodes from 0 to 3"));
  EXPECT_THAT(message(input + "edges g = (0.5, 1, 2)\n"), HasSubstr("an edge of node 0.5"));
  EXPECT_THAT(message(input + "table w = [1, 2]\nx = x + w[i]\n"), HasSubstr("row 0, column 2"));
  EXPECT_THAT(message(input + "table w = [[1, 2], [3]]\n"), HasSubstr("a row of 1 numbers"));
  EXPECT_THAT(message(input + "receive y = x from i / 2.0\n"), HasSubstr("no whole number"));
  EXPECT_THAT(message(input + "for k in 0 .. i:\n  x = x\n"),
              HasSubstr("'i' depends on the processor"));
}

TEST(LanguageErrors, WhatOtherLanguagesWrite) {
  EXPECT_THAT(message(input + "x = x ^ 2\n"), HasSubstr("a power is power(a, b)"));
  EXPECT_THAT(message(input + "x = x ** 2\n"), HasSubstr("a power is power(a, b)"));
  EXPECT_THAT(message(input + "x = x // 2\n"), HasSubstr("rounds down"));
  EXPECT_THAT(message(input + "if n > 1 & n < 3:\n"), HasSubstr("write and"));
  EXPECT_THAT(message(input + "if n > 1 | n < 3:\n"), HasSubstr("write or"));
  EXPECT_THAT(message(input + "if !(n > 1):\n"), HasSubstr("write not"));
  EXPECT_THAT(message(input + "x = 1; x = 2\n"), HasSubstr("a line of its own"));
  EXPECT_THAT(message(input + "if n = 3:\n  x = 1\n"), HasSubstr("== compares"));
}

TEST(LanguageErrors, AssertionsNameTheSizes) {
  EXPECT_EQ(
      message("parameter K = 3\n" + input + "assert (n % 2 == 0\n   and n > K)\noutput x\n", 4),
      "");
  EXPECT_THAT(
      message("parameter K = 3\n" + input + "assert (n % 2 == 0\n   and n > K)\noutput x\n", 5),
      HasSubstr("t.par:3:1: the program is not for n = 5, K = 3\n"
                "  expected (n % 2 == 0 and n > K)"));
  EXPECT_THAT(message(input + "assert n\n"), HasSubstr("4 as a condition"));
  EXPECT_THAT(message(input + "assert x > 1\n"), HasSubstr("the word 'x'"));
  EXPECT_THAT(message(input + "assert i > 1\n"), HasSubstr("'i' depends on the processor"));
}

TEST(LanguageErrors, TheWholeProgram) {
  EXPECT_THAT(message(input), HasSubstr("a program without output"));
  EXPECT_THAT(message("word x : real\noutput x\n"), HasSubstr("a program without input"));
  EXPECT_THAT(message(input + "output x\nx = 2 * x\n"), HasSubstr("a statement after the output"));
  EXPECT_THAT(message("task sorting\n" + input + "output x\n"),
              HasSubstr("t.par:1:6: unknown task"));
  EXPECT_THAT(message("task min-sum\n" + input + "output x\n"),
              HasSubstr("task min-sum with 4 processors"));
  EXPECT_THAT(message(input + "if i > 0:\n  receive y = x from 0\n"),
              HasSubstr("t.par:3:3: a receive inside an 'if' that depends on the processor"));
  EXPECT_THAT(message("procedure f(x):\n  f(x)\n" + input + "f(x)\n"), HasSubstr("calls itself"));
  EXPECT_THAT(
      message("word s : real\nfor k in 1 .. 2:\n  word x : real = input\n  s += x\noutput s\n"),
      HasSubstr("t.par:3:3: an input inside a loop or procedure"));
  EXPECT_THAT(message("procedure f():\n  word y : real = input\n" + input + "f()\noutput x\n"),
              HasSubstr("t.par:2:3: an input inside a loop or procedure"));
  EXPECT_EQ(message("if n > 2:\n  word x : real = input\noutput x\n"), "");
  EXPECT_THAT(message(input + "output x\n", 0), HasSubstr("n = 0"));
}

TEST(LanguageErrors, HostileProgramsEnd) {
  EXPECT_THAT(
      message(input + "for a in 0 .. 99999999:\n  for b in 0 .. 99999999:\n    let c = a\n"),
      HasSubstr("takes too long"));
  EXPECT_THAT(message(input + "for a in 0 .. 99999999:\n  x = x + 1\n"),
              HasSubstr("too many operations inside each other"));
  EXPECT_THAT(message(input + "word a[9999999] : real\n"), HasSubstr("an array of 9999999 words"));
  EXPECT_THAT(message("processors 99999999999\n" + input), HasSubstr("99999999999 processors"));
  EXPECT_THAT(message(input + "let k = power(10, 300) * 1.0 * power(10.0, 300)\n"),
              HasSubstr("beyond 2^53"));
}

}  // namespace
}  // namespace posattn
