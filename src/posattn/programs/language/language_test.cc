#include "posattn/programs/language/language.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "posattn/programs/language/text_program_test.h"

namespace posattn {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The statements go between input and output.
Values run_body(const std::string& body, const Values& x) {
  return run(input + body + "output x\n", x);
}

TEST(Language, MissingPlacesReadZeroOrWhatElseSays) {
  EXPECT_THAT(run_body("receive x = x from i - 1\n", {1, 2, 3}), ElementsAre(0, 1, 2));
  EXPECT_THAT(run_body("receive x = x from i - 1 else i\n", {1, 2, 3}), ElementsAre(1, 1, 2));
  EXPECT_THAT(run_body("receive x = x from i - 2 else i - 1 else n - 1\n", {1, 2, 3}),
              ElementsAre(3, 1, 1));
  EXPECT_THAT(run_body("receive x = x from i if i > 0 else nothing\n", {1, 2, 3}),
              ElementsAre(0, 2, 3));
}

TEST(Language, AProgramNamesItselfOrIsNamedByOthers) {
  const std::string text = "word x : real = input\noutput x\n", named = "program own\n" + text;
  EXPECT_EQ(text_name(text, "mine.par"), "");
  EXPECT_EQ(text_name(named, "mine.par"), "own");
  EXPECT_EQ(compile_text(text, "mine.par", 2).name, "mine");
  EXPECT_EQ(compile_text(text, "mine.par", 2, {.name = "given"}).name, "given");
  EXPECT_EQ(compile_text(named, "mine.par", 2, {.name = "given"}).name, "own");
}

TEST(Language, IndexArithmeticIsOfWholeNumbers) {
  const auto value = [](const std::string& term) {
    return run_body("word k : real = " + term + "\nx = k\n", {0, 0, 0, 0, 0})[3];
  };
  const auto whole = [](const std::string& term) {
    return run_body("word k : int[-99..99] = " + term + "\nx = k\n", {0, 0, 0, 0, 0})[3];
  };
  EXPECT_EQ(whole("7 / 2 + (-7) / 2"), -1);
  EXPECT_EQ(whole("(-7) % 4"), 1);
  EXPECT_EQ(whole("i xor 5"), 6);
  EXPECT_EQ(whole("min(4, n, 9) * 10 + max(1, i) - abs(-2) + relu(-3)"), 41);
  EXPECT_EQ(whole("floor_log2(n) * 10 + ceil_log2(n)"), 23);
  EXPECT_EQ(whole("ceil_log2(1) + power(2, i)"), 8);
  EXPECT_EQ(whole("1 if i < 3 else 2 if i == 3 and not n == 4 else 3"), 2);
  EXPECT_EQ(whole("choose(i >= 3, 4, 5)"), 4);
  EXPECT_EQ(value("7 / 2.0"), 3.5);
  EXPECT_NEAR(value("cos(pi) + sin(pi / 2) + sqrt(4) + exp(0)"), 3, 1e-12);
}

TEST(Language, LoopsFollowTheirFirstValues) {
  // Collects the digits of what the loop runs over.
  const auto digits = [](const std::string& series) {
    return run_body("for d in " + series + ":\n  x = 10 * x + d\n", {0, 0, 0, 0, 0, 0, 0, 0})[0];
  };
  EXPECT_EQ(digits("1, 2, 4, ... below n"), 124);
  EXPECT_EQ(digits("1, 2, 4, ... up to n"), 1248);
  EXPECT_EQ(digits("1, 2, ... below 6"), 12345);
  EXPECT_EQ(digits("1, 3, 5, ... up to 9"), 13579);
  EXPECT_EQ(digits("1, 3, 9, ... below 10"), 139);
  EXPECT_EQ(digits("n, n / 2, n / 4, ... down to 1"), 8421);
  EXPECT_EQ(digits("n / 2, n / 4, ... down to 1"), 421);
  EXPECT_EQ(digits("n / 8, n / 16, ... down to 1"), 1);
  EXPECT_EQ(digits("n / 16, n / 32, ... down to 1"), 0);
  EXPECT_EQ(digits("8, 6, ... above 2"), 864);
  EXPECT_EQ(digits("2 .. 5"), 2345);
  EXPECT_EQ(digits("3 .. 2"), 0);
  EXPECT_THAT(message(input + "for d in 1, 2, 5, ... below n:\n  x = x\noutput x\n", 9),
              HasSubstr("constant difference or a constant ratio"));
  EXPECT_THAT(message(input + "for d in 3, 2, ... below n:\n  x = x\noutput x\n"),
              HasSubstr("never end"));
  EXPECT_THAT(message(input + "for d in 8 / 2, 8 / 4, ... down to 0:\n  x = x\noutput x\n"),
              HasSubstr("never end"));
}

TEST(Language, ConditionsOnSizesChooseStatements) {
  const std::string body =
      "if n > 2:\n  receive x = x from 0\nelif n == 2:\n  x = 2 * x\nelse:\n  x = -x\n";
  EXPECT_THAT(run_body(body, {5, 6, 7}), ElementsAre(5, 5, 5));
  EXPECT_THAT(run_body(body, {5, 6}), ElementsAre(10, 12));
  EXPECT_THAT(run_body(body, {5}), ElementsAre(-5));
}

TEST(Language, ConditionsByPositionChooseValues) {
  EXPECT_THAT(run_body("x = 2 * x if i % 2 == 0 else -x\n", {1, 2, 3}), ElementsAre(2, -2, 6));
  EXPECT_THAT(run_body("x = x + 1 if i == 0 else 7 if i == 1 else x\n", {1, 2, 3}),
              ElementsAre(2, 7, 3));
  const std::string blocks =
      "word y : real = x\n"
      "if i < 2:\n  y = x + y\n  x = y + 1\n  if i == 0:\n    x = -x\n"
      "else:\n  x = abs(x)\n"
      "x = x + y\n";
  EXPECT_THAT(run_body(blocks, {1, 2, -3, -4}), ElementsAre(-1, 9, 0, 0));
}

TEST(Language, ConditionsOnDataTakeBits) {
  const std::string text = whole_input +
                           "word b : bit = x > 4\n"
                           "word y : int[0..20] = 0\n"
                           "if b and x != 9:\n  y = 2 * x\nelse:\n  y = choose(x == 3, 1, x)\n"
                           "output y\n";
  EXPECT_THAT(run(text, {3, 4, 5, 9}), ElementsAre(1, 4, 10, 9));
}

TEST(Language, ArraysMoveAsAWhole) {
  const std::string body =
      "word a[3] : real = 0\n"
      "for k in 0 .. 2:\n  a[k] = (k + 1) * x\n"
      "receive b = a from i - 1\n"
      "x = b[0] + b[1] + b[2]\n";
  EXPECT_THAT(run_body(body, {1, 2, 3}), ElementsAre(0, 6, 12));
}

TEST(Language, ArraysAreSummedAndCompared) {
  const std::string body = "word a[3] : real\na[0] = x\na[1] = 2 - x\na[2] = 3 * x\n";
  EXPECT_THAT(run_body(body + "x = sum(a)\n", {1, 2}), ElementsAre(5, 8));
  EXPECT_THAT(run_body(body + "x = max(a) + 10 * min(a, x)\n", {1, 2}), ElementsAre(13, 6));
  EXPECT_THAT(run_body("x = x + sum(1, 2, n)\n", {1, 2}), ElementsAre(6, 7));
}

TEST(Language, AssignmentsMayAdd) {
  EXPECT_THAT(run_body("x += 2 * x\nx -= 1\n", {1, 2}), ElementsAre(2, 5));
  EXPECT_THAT(run_body("word a[2] : real\na[1]+=x\nx=a[1]-a[0]\n", {1, 2}), ElementsAre(1, 2));
}

TEST(Language, ElseIfIsElif) {
  const std::string body = "if n > 2:\n  x = 1\nelse if i == 0:\n  x = 2\nelse:\n  x = 3\n";
  EXPECT_THAT(run_body(body, {0, 0}), ElementsAre(2, 3));
  EXPECT_THAT(run_body(body, {0, 0, 0}), ElementsAre(1, 1, 1));
}

TEST(Language, OutputsMayBeTerms) {
  EXPECT_THAT(run(input + "output 2 * x + i\n", {1, 2}), ElementsAre(2, 5));
  const StaticProgram two =
      compile_text(whole_input + "output x / 2\noutput x > 4 and i == 0\n", "t.par", 2);
  EXPECT_THAT(run_static<double>(two, Values{7, 9}, 1), ElementsAre(3, 1, 4, 0));
  EXPECT_EQ(to_string(two.words[two.outputs[0]].type), "int[0..4]");
}

TEST(Language, WholeNumbersAreDividedAndJoined) {
  Values numbers;
  for (int x = -7; x <= 12; ++x) numbers.push_back(x);
  const auto floored = [](double x, double c) { return std::floor(x / c); };
  for (const int c : {1, 2, 3, 5, 40}) {
    const std::string text =
        fmt::format("word x : int[-7..12] = input\noutput 100 * (x / {0}) + x % {0}\n", c);
    const Values found = run(text, numbers);
    for (size_t k = 0; k < numbers.size(); ++k) {
      const double quotient = floored(numbers[k], c);
      EXPECT_EQ(found[k], 100 * quotient + numbers[k] - c * quotient) << numbers[k] << " by " << c;
    }
  }
  const Values digits = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  const Values joined =
      run(whole_input + "word k : int[0..3] = i % 4\noutput 100 * (x xor 5) + (x xor k)\n", digits);
  for (int x = 0; x < 10; ++x) EXPECT_EQ(joined[x], 100 * (x ^ 5) + (x ^ (x % 4)));
  EXPECT_THAT(run(whole_input + "word b : bit = x > 4\noutput b xor x % 2 == 1\n", {3, 4, 5, 6}),
              ElementsAre(1, 0, 0, 1));
  // Quotients of reals stay real, and so do quotients where a real is wanted.
  EXPECT_THAT(run(whole_input + "word r : real = x / 2\noutput r\n", {3, 4}), ElementsAre(1.5, 2));
}

TEST(Language, BitsAreFactors) {
  EXPECT_THAT(run("word k : int[0..9] = input\nword r : real = 0.5 * k\nword b : bit = k > 2\n"
                  "output r * b + b * b + i * b\n",
                  {1, 2, 3, 4}),
              ElementsAre(0, 0, 4.5, 6));
  EXPECT_THAT(run(whole_input + "output (x / 5) * x + x % 2 * 100\n", {3, 4, 5, 6}),
              ElementsAre(100, 0, 105, 6));
}

// The range is what the unrolled program can reach.
TEST(Language, RangesOfIntegersAreInferred) {
  const std::string text = whole_input +
                           "word r : int\n"
                           "for k in 1 .. 5:\n"
                           "  receive y = x from i - k\n"
                           "  if y < x:\n    r = r + 1\n"
                           "output r\n";
  const StaticProgram program = compile_text(text, "t.par", 6);
  EXPECT_EQ(to_string(program.words[program.outputs[0]].type), "int[0..5]");
  EXPECT_THAT(run_static<double>(program, Values{3, 1, 4, 1, 5, 9}, 1),
              ElementsAre(5, 4, 5, 2, 5, 5));
  // At each round its own: before the doubling r is a bit.
  EXPECT_THAT(run(whole_input + "word r : int = x > 3\nreceive s = r from i - 1\n"
                                "word b : bit = s == 1\nr = 8 * r + b\noutput r\n",
                  {4, 2, 5}),
              ElementsAre(8, 1, 8));
  const StaticProgram starts = compile_text(input + "word r : int = i - 2\noutput r\n", "t.par", 6);
  EXPECT_EQ(to_string(starts.words[starts.outputs[0]].type), "int[-2..3]");
}

// What is received has the type of what is read, and may become another.
TEST(Language, ReceivedWordsTakeEveryValue) {
  EXPECT_THAT(run(whole_input + "receive y = x from i - 1\ny = y + 20\nreceive z = y from i - 1\n"
                                "z = 0.5 * z\noutput z + y\n",
                  {1, 2, 3}),
              ElementsAre(20, 31, 32.5));
}

TEST(Language, SumsOfWholeNumbersAreWhole) {
  const std::string text = whole_input +
                           "word b : bit = x > 2\n"
                           "receive count = sum of b over j where j <= i\n"
                           "receive total = sum of (i - j) * x over j\n"
                           "output count % 2 + 10 * (total > 0)\n";
  const StaticProgram program =
      compile_text(whole_input + "receive t = sum of (i - j) * x over j\noutput t\n", "t.par", 3);
  EXPECT_EQ(to_string(program.words[program.outputs[0]].type), "int[-27..27]");
  EXPECT_THAT(run(text, {1, 3, 5, 0}), ElementsAre(0, 1, 10, 10));
}

TEST(Language, ExtremesOverProcessors) {
  EXPECT_THAT(run_body("receive x = min of x over j\n", {3, 1, 2}), ElementsAre(1, 1, 1));
  EXPECT_THAT(run_body("receive y = max of x over j where j <= i\nx = y\n", {3, 1, 5, 2}),
              ElementsAre(3, 3, 5, 5));
  EXPECT_THAT(
      run_body("word y : real = x\nreceive y = min of x over j where abs(i - j) == 1\nx = y\n",
               {3, -1, 5, 2}),
      ElementsAre(-1, 3, -1, 5));
  // Nobody: zero, as for a missing place.
  EXPECT_THAT(run_body("receive x = max of x over j where j < i\n", {-3, -1, -5}),
              ElementsAre(0, -3, -1));
  EXPECT_THAT(run_body("word a[2] : real\na[0] = x\na[1] = -x\nreceive b = min of a over j\n"
                       "x = b[0] + 10 * b[1]\n",
                       {3, 1, 2}),
              ElementsAre(-29, -29, -29));
}

TEST(Language, LoopsThatNeverRunAreNoted) {
  const auto warnings = [](const std::string& text, int n) {
    std::vector<std::string> lines;
    compile_text(text, "t.par", n, {.warnings = &lines});
    return lines;
  };
  const std::string text = input +
                           "for k in 5 .. 2:\n  x = x + k\n"
                           "for k in 0 .. 2:\n  for j in 1 .. k:\n    x = x + j\noutput x\n";
  EXPECT_THAT(warnings(text, 4), ElementsAre("t.par:2:1: the loop over 'k' never runs for n = 4"));
  EXPECT_TRUE(warnings(input + "for d in 1, 2, 4, ... below n:\n  x = x\noutput x\n", 1).empty());
}

TEST(Language, SumsAreFixedMatrices) {
  EXPECT_THAT(run_body("receive x = sum of x over j where j <= i\n", {1, 2, 3}),
              ElementsAre(1, 3, 6));
  EXPECT_THAT(run_body("receive x = sum of (i - j) * x over j\n", {1, 2, 3}),
              ElementsAre(-8, -2, 4));
  EXPECT_THAT(
      run_body("table w = [[1, 2], [3, -4.5]]\nreceive x = sum of w[i, j] * x over j\n", {1, 2}),
      ElementsAre(5, -6));
  EXPECT_THAT(run_body("table w = [10,\n           20]\nx = x + w[i]\n", {1, 2}),
              ElementsAre(11, 22));
  EXPECT_THAT(run_body("table w = [[10, 20]]\nx = x + w[0, i]\n", {1, 2}), ElementsAre(11, 22));
  EXPECT_THAT(run_body("edges g = (0, 1, 2), (2, 0, -1)\nreceive x = sum of g[j, i] * x over j\n",
                       {1, 10, 100}),
              ElementsAre(-100, 2, 0));
  EXPECT_THAT(run_body("table e = [[0, 1], [1, 2]]\nfor k in 0 .. rows(e) - 1:\n"
                       "  receive y = x from e[k, 0] if i == e[k, 1] else nothing\n  x = x + y\n",
                       {1, 2, 3}),
              ElementsAre(1, 3, 6));
}

TEST(Language, ProceduresTakeWordsAndNumbers) {
  const std::string text =
      "procedure add-from(x, place, w):\n"
      "  receive y = x from place\n"
      "  word z : real = w * y\n"
      "  x = x + z\n"
      "word x : real = input\n"
      "word y : real = x\n"
      "add-from(x, i - 1, 2)\n"
      "add-from(x, i + 1, 0.5)\n"
      "output x\n";
  EXPECT_THAT(run(text, {1, 2, 3}), ElementsAre(3, 7.5, 7));
}

TEST(Language, ProcessorsMayBeMoreThanTheLength) {
  const std::string text = "processors 2 * n\n" + input + "receive x = x from i - n\noutput x\n";
  const StaticProgram program = compile_text(text, "t.par", 2);
  EXPECT_EQ(program.processors, 4);
  EXPECT_THAT(run_static<double>(program, Values{1, 2, 3, 4}, 1), ElementsAre(0, 0, 1, 2));
}

TEST(Language, CopiesAndUnrelatedStatementsCostNoRound) {
  const StaticProgram program = compile_text(input +
                                                 "word y : real = x\n"
                                                 "receive a = y from i - 1\n"
                                                 "y = y + a\n"
                                                 "receive b = x from i + 1\n"
                                                 "x = y + b\noutput x\n",
                                             "t.par", 4);
  EXPECT_EQ(program.rounds.size(), 1u);
  EXPECT_THAT(program.rounds[0].lines, ElementsAre(2, 3, 4, 5, 6));
}

// Values by position are chosen once a round, however many statements there are.
TEST(Language, ManyConditionsByPositionDoNotMultiply) {
  std::string body;
  for (int k = 0; k < 30; ++k) body += fmt::format("if i % 2 == {}:\n  x = x + 1\n", k % 2);
  EXPECT_THAT(run_body(body, {0, 5}), ElementsAre(15, 20));
}

TEST(Language, NameIsTheTextsOrTheFiles) {
  EXPECT_EQ(compile_text("program a-2\n" + input + "output x\n", "t.par", 2).name, "a-2");
  EXPECT_EQ(compile_text(input + "output x\n", "some/t.par", 2).name, "t");
  EXPECT_EQ(compile_text("task sort\n" + input + "output x\n", "t.par", 2).task, "sort");
}

TEST(Language, MessagesGoWhereDataSays) {
  EXPECT_THAT(run(whole_input + "send y = x to x\noutput y\n", {2, 0, 1}), ElementsAre(0, 1, 2));
  EXPECT_THAT(
      run(whole_input + "send y = x to i + 1 if x > 3 else nothing\noutput y\n", {4, 2, 5, 6}),
      ElementsAre(0, 4, 0, 5));
  // What is received may be declared, and several words go the same way.
  EXPECT_THAT(
      run(whole_input + "word a[2] : int[0..18] = x\na[1] = 2 * x\nword to : int[0..9] = x\n"
                        "permute a = a to to\noutput a\n",
          {1, 0}),
      ElementsAre(0, 0, 1, 2));
  EXPECT_TRUE(compile_text(whole_input + "send y = x to x\noutput y\n", "t.par", 2).sends());
  // Words may still be called so.
  EXPECT_THAT(run("word send : real = input\nsend = 2 * send\noutput send\n", {1, 2}),
              ElementsAre(2, 4));
}

TEST(Language, SeveralInputsAndOutputs) {
  const StaticProgram program = compile_text(
      "word x : real = input\nword k[2] : int[0..9] = input\nx = x + k[0]\noutput x\noutput k\n",
      "t.par", 2);
  EXPECT_EQ(run_static<double>(program, Values{1, 2, 3, 4, 5, 6}, 1), (Values{3, 2, 3, 9, 5, 6}));
}

}  // namespace
}  // namespace posattn
