#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "posattn/programs/language/syntax.h"

namespace posattn::language {
namespace {

using testing::HasSubstr;

const Source parsed_source("t.par");

std::string message(const std::string& text) {
  try {
    parse(text, parsed_source, {});
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::configuration);
    return error.what();
  }
  return "";
}

// A term with all its brackets.
std::string bracketed(const Term& term) {
  std::string result = "(" + std::to_string(static_cast<int>(term.kind)) + term.name;
  if (term.kind == Term::Kind::number) result = "(" + std::to_string(term.number).substr(0, 1);
  for (const Term& operand : term.operands) result += bracketed(operand);
  return result + ")";
}
std::string value_of(const std::string& text) {
  const SyntaxTree tree = parse("let v = " + text + "\n", parsed_source, {});
  return bracketed(std::get<LetStatement>(tree.statements.at(0).is).value);
}

TEST(Parser, OperatorsBindAsInTextbooks) {
  EXPECT_EQ(value_of("a + b * c - d"), value_of("(a + (b * c)) - d"));
  EXPECT_EQ(value_of("a / b % c"), value_of("(a / b) % c"));
  EXPECT_EQ(value_of("-a * b"), value_of("(-a) * b"));
  EXPECT_EQ(value_of("i xor k - 1"), value_of("i xor (k - 1)"));
  EXPECT_EQ(value_of("i xor d > i"), value_of("(i xor d) > i"));
  EXPECT_EQ(value_of("not a < b and c or d"), value_of("((not (a < b)) and c) or d"));
  EXPECT_EQ(value_of("a if c else b if d else e"), value_of("a if c else (b if d else e)"));
  EXPECT_NE(value_of("a - b - c"), value_of("a - (b - c)"));
}

TEST(Parser, KeepsEveryPartOfAProgram) {
  const SyntaxTree tree = parse(
      "program two-step\n"
      "task min-sum\n"
      "processors 2 * n\n"
      "procedure scan-min(x, d):\n"
      "  receive y = x from i - d else i else nothing\n"
      "word a[3] : int[0..n] = 1\n"
      "for j in k / 2, k / 4, ... down to 1:\n"
      "  scan-min(a, 3)\n"
      "if n > 1:\n"
      "  a[0] = 1\n"
      "elif n > 0:\n"
      "  a[0] = 2\n"
      "else:\n"
      "  a[0] = 3\n"
      "receive s = sum of 2 * i * a over j where j < i\n"
      "edges g = (0, 1, 2.5), (1, 2, 1)\n"
      "output a[0]\n",
      parsed_source, {});
  EXPECT_EQ(tree.name, "two-step");
  EXPECT_EQ(tree.task, "min-sum");
  EXPECT_TRUE(tree.processors.has_value());
  ASSERT_EQ(tree.procedures.size(), 1u);
  EXPECT_EQ(tree.procedures[0].name, "scan-min");
  EXPECT_EQ(std::get<ReceiveStatement>(tree.procedures[0].body.at(0).is).places.size(), 3u);
  ASSERT_EQ(tree.statements.size(), 6u);
  const auto& loop = std::get<ForStatement>(tree.statements[1].is);
  EXPECT_EQ(loop.bound, ForStatement::Bound::down_to);
  EXPECT_EQ(std::get<CallStatement>(loop.body.at(0).is).procedure, "scan-min");
  const auto& choice = std::get<IfStatement>(tree.statements[2].is);
  EXPECT_EQ(std::get<IfStatement>(choice.otherwise.at(0).is).otherwise.size(), 1u);
  const auto& sum = std::get<SumStatement>(tree.statements[3].is);
  EXPECT_EQ(sum.source.name, "a");
  EXPECT_TRUE(sum.condition.has_value());
  EXPECT_EQ(tree.statements[5].position.line, 17);
}

TEST(Parser, PointsAtWhatIsWrong) {
  EXPECT_THAT(message("word x real"), HasSubstr("t.par:1:8: 'real'"));
  EXPECT_THAT(message("word x : float"), HasSubstr("real, int[low..high] or bit"));
  EXPECT_THAT(message("for d in 1, 2, 4 below n:\n  d\n"), HasSubstr("'...'"));
  EXPECT_THAT(message("for d in 1, ... below n:\n  d\n"), HasSubstr("at least two values"));
  EXPECT_THAT(message("for d in 1, 2, ... until n:\n"),
              HasSubstr("below, up to, above or down to"));
  EXPECT_THAT(message("if n > 1\n  x = 1\n"), HasSubstr("t.par:1:9: the end of the line"));
  EXPECT_THAT(message("if n > 1:\nx = 1\n"), HasSubstr("a block, indented"));
  EXPECT_THAT(message("x = 1\n  y = 2\n"), HasSubstr("t.par:2:3: a deeper indentation"));
  EXPECT_THAT(message("x = (1 + 2]"), HasSubstr("to close the bracket"));
  EXPECT_THAT(message("x = 1 +"), HasSubstr("a number, a name or a bracket"));
  EXPECT_THAT(message("let n = 3"), HasSubstr("'n' has a meaning of its own"));
  EXPECT_THAT(message("x = a < b < c"), HasSubstr("one comparison"));
  EXPECT_THAT(message("x + 1"), HasSubstr("'=' and the word's new value"));
  EXPECT_THAT(message("x = 1\nprocessors 3"), HasSubstr("before the first statement"));
  EXPECT_THAT(message("program a\nprogram b"), HasSubstr("a second line 'program'"));
  EXPECT_THAT(message("procedure f(a, a):\n  a = 1"), HasSubstr("a second parameter"));
  EXPECT_THAT(message("receive y = x"), HasSubstr("'from'"));
}

TEST(Parser, KnowsWhatWasMeant) {
  for (const auto& [line, word] : {std::pair{"recieve y = x from i - 1", "receive"},
                                   {"permut y = x to d", "permute"},
                                   {"outptu 2 * x", "output"},
                                   {"fro d in 1, 2, ... below n:", "for"}}) {
    const std::string found = message("word x : real = input\n" + std::string(line));
    EXPECT_THAT(found, HasSubstr("t.par:2:1: '")) << line;
    EXPECT_THAT(found, HasSubstr("did you mean '" + std::string(word) + "'?")) << line;
  }
  EXPECT_THAT(message("x y = 1"), HasSubstr("t.par:1:3: 'y'"));
  EXPECT_THAT(message("x y = 1"), HasSubstr("send, permute, output"));
  for (const char* kind : {"sum", "min", "max"}) {
    EXPECT_THAT(message("word s : real = 2 * " + std::string(kind) + " of x over j"),
                HasSubstr("receive y = " + std::string(kind) + " of x over j"));
  }
}

TEST(Parser, RefusesWhatIsTooDeep) {
  EXPECT_THAT(message("x = " + std::string(100000, '(') + "1" + std::string(100000, ')')),
              HasSubstr("too deep"));
  EXPECT_THAT(message("x = " + std::string(100000, '-') + "1"), HasSubstr("too deep"));
  std::string chain = "x = 1", blocks, choices = "if n > 1:\n  x = 1\n";
  for (int k = 0; k < 5000; ++k) chain += " + 1";
  for (int k = 0; k < 300; ++k) blocks += std::string(k, ' ') + "if n > 1:\n";
  for (int k = 0; k < 5000; ++k) choices += "elif n > 1:\n  x = 1\n";
  EXPECT_THAT(message(chain), HasSubstr("too many operators"));
  EXPECT_THAT(message(blocks), HasSubstr("too deep"));
  EXPECT_THAT(message(choices), HasSubstr("too deep"));
}

}  // namespace
}  // namespace posattn::language
