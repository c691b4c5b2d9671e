#include "posattn/programs/language/language.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "posattn/programs/lowering/network_plan.h"

namespace posattn {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Values = std::vector<double>;

const std::string input = "word x : real = input\n";
const std::string whole_input = "word x : int[0..9] = input\n";

Values run(const std::string& text, const Values& x) {
  const StaticProgram program = compile_text(text, "t.par", static_cast<int>(x.size()));
  return run_static<double>(program, x, 1);
}
// With the statements between input and output.
Values run_body(const std::string& body, const Values& x) {
  return run(input + body + "output x\n", x);
}

std::string message(const std::string& text, int n = 4, TextOptions options = {}) {
  options.limits.work = 1 << 18;
  try {
    compile_text(text, "t.par", n, options);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::configuration);
    return error.what();
  }
  return "";
}

TEST(Language, MissingPlacesReadZeroOrWhatElseSays) {
  EXPECT_THAT(run_body("receive x = x from i - 1\n", {1, 2, 3}), ElementsAre(0, 1, 2));
  EXPECT_THAT(run_body("receive x = x from i - 1 else i\n", {1, 2, 3}), ElementsAre(1, 1, 2));
  EXPECT_THAT(run_body("receive x = x from i - 2 else i - 1 else n - 1\n", {1, 2, 3}),
              ElementsAre(3, 1, 1));
  EXPECT_THAT(run_body("receive x = x from i if i > 0 else nothing\n", {1, 2, 3}),
              ElementsAre(0, 2, 3));
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

// Parameters: numbers of the text that may be set from outside.
const std::string with_parameters =
    "parameter k in 1..n = 2\n"
    "parameter w = 0.5\n"
    "parameter more = 2 * k\n"
    "procedure add(x):\n  x = x + k\n" +
    input + "add(x)\nx = w * x + more\noutput x\n";

Values run_with(const Settings& settings) {
  const StaticProgram program = compile_text(with_parameters, "t.par", 4, {.settings = settings});
  return run_static<double>(program, Values{0, 2, 4, 6}, 1);
}

std::string setting_message(const Settings& settings) {
  try {
    run_with(settings);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "";
}

TEST(Language, ParametersHaveDefaultsAndMayBeSet) {
  EXPECT_THAT(run_with({}), ElementsAre(5, 6, 7, 8));
  EXPECT_THAT(run_with({{"k", 4}}), ElementsAre(10, 11, 12, 13));
  EXPECT_THAT(run_with({{"w", 2}, {"more", 0}}), ElementsAre(4, 8, 12, 16));
  const auto found = text_parameters(with_parameters, "t.par", 4, {.settings = {{"k", 3}}});
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(to_text(found[0]), "k = 3 (1 to 4)");
  EXPECT_EQ(to_text(found[1]), "w = 0.5");
  EXPECT_EQ(to_text(found[2]), "more = 6");
  // A word of the first versions may have the statement's name.
  EXPECT_THAT(
      run("word parameter : real = input\nparameter = 2 * parameter\noutput parameter\n", {1, 2}),
      ElementsAre(2, 4));
}

TEST(LanguageErrors, Parameters) {
  EXPECT_THAT(setting_message({{"kk", 4}}), HasSubstr("unknown parameter 'kk'"));
  EXPECT_THAT(setting_message({{"k", 5}}),
              HasSubstr("--set k=5\n  expected a whole number from 1 to 4"));
  EXPECT_THAT(setting_message({{"k", 1.5}}), HasSubstr("--set k=1.5"));
  try {
    compile_text(input + "output x\n", "t.par", 4, {.settings = {{"k", 1}}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("the program has no parameters"));
  }
  EXPECT_THAT(message("parameter k in 5..9 = 4\n" + input), HasSubstr("the default k = 4"));
  EXPECT_THAT(message("parameter k = 1 < 2\n" + input), HasSubstr("a condition as parameter"));
  EXPECT_THAT(message("parameter k = 1\nparameter k = 2\n"), HasSubstr("a second parameter 'k'"));
  EXPECT_THAT(message("parameter k 1\n"), HasSubstr("'=' and the value where nothing is set"));
  EXPECT_THAT(message("parameter k in 1 = 1\n"), HasSubstr("'..' and the largest value"));
  EXPECT_THAT(message(input + "parameter k = 2\n"), HasSubstr("before the first statement"));
  EXPECT_THAT(message("parameter k = 2\n" + input + "let k = 3\n"),
              HasSubstr("'k' has a meaning already"));
  EXPECT_THAT(message("parameter k = 2\nprocedure f(k):\n  k = 1\n" + input + "f(x)\n"),
              HasSubstr("'k' has a meaning already"));
}

TEST(Settings, AreNamesWithNumbers) {
  EXPECT_EQ(parse_settings("K=16,q=-0.5"), (Settings{{"K", 16}, {"q", -0.5}}));
  EXPECT_TRUE(parse_settings("").empty());
  EXPECT_EQ(to_text(parse_settings("q=0.1,K=16")), "K=16,q=0.1");
  for (const char* wrong : {"K", "=3", "K=", "K=1,", "K=1,K=2", "K=one"}) {
    SCOPED_TRACE(wrong);
    try {
      parse_settings(wrong);
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
    }
  }
}

TEST(LanguageErrors, WhatCannotBeExactIsRefusedWithTheReason) {
  EXPECT_THAT(message(input + "word b : bit = x > 1\n"),
              HasSubstr("t.par:2:18: a comparison of real values"));
  EXPECT_THAT(message(input + "x = x * x\n"), HasSubstr("t.par:2:7: a product of two words"));
  EXPECT_THAT(message(input + "x = 1 / x\n"), HasSubstr("a division by a word"));
  EXPECT_THAT(message(input + "x = x % 2\n"), HasSubstr("% or xor of a word"));
  EXPECT_THAT(message(input + "x = sqrt(x)\n"), HasSubstr("sqrt of a word"));
  EXPECT_THAT(message(input + "x = choose(x, 1, 2)\n"),
              HasSubstr("a selection by a value of type real"));
  EXPECT_THAT(message(input + "x = i * x\n"), HasSubstr("a factor that depends on the processor"));
  EXPECT_THAT(
      message(whole_input + "x = x + 1\n"),
      HasSubstr("t.par:2:1: a value of type int[1..10] for word 'x'\n  expected int[0..9]"));
  EXPECT_THAT(message(whole_input + "x = x / 2\n"), HasSubstr("a value of type real for word 'x'"));
  EXPECT_THAT(message(whole_input + "word b : bit = not x\n"), HasSubstr("'not' of a value"));
  EXPECT_THAT(message(input + "receive y = x from x\n"), HasSubstr("the word 'x'"));
  EXPECT_THAT(message(input + "receive y = sum of 1 / n * x over j\n"),
              HasSubstr("t.par:2:22: 1 / 4 of whole numbers rounds down to 0"));
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
  EXPECT_THAT(message(input + "table w = [1, 2]\nx = x + w[i]\n"), HasSubstr("row 0, column 2"));
  EXPECT_THAT(message(input + "table w = [[1, 2], [3]]\n"), HasSubstr("a row of 1 numbers"));
  EXPECT_THAT(message(input + "receive y = x from i / 2.0\n"), HasSubstr("no whole number"));
  EXPECT_THAT(message(input + "for k in 0 .. i:\n  x = x\n"),
              HasSubstr("'i' depends on the processor"));
}

TEST(Language, SeveralInputsAndOutputs) {
  const StaticProgram program = compile_text(
      "word x : real = input\nword k[2] : int[0..9] = input\nx = x + k[0]\noutput x\noutput k\n",
      "t.par", 2);
  EXPECT_EQ(run_static<double>(program, Values{1, 2, 3, 4, 5, 6}, 1), (Values{3, 2, 3, 9, 5, 6}));
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
