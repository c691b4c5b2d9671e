#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "posattn/programs/form/static_program.h"
#include "posattn/programs/language/language.h"

namespace posattn {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> describe(const std::string& text, size_t longest = 60) {
  const StaticProgram program = compile_text(text, "test.par", 4);
  return describe_updates(program, program.rounds.at(0), longest);
}

TEST(Describe, TheLibrary) {
  const auto first = [](const char* name) {
    const StaticProgram program = library_program(name, 8);
    return describe_updates(program, program.rounds.at(0)).at(0);
  };
  EXPECT_EQ(first("cumulative-sum"), "x = x + y");
  EXPECT_EQ(first("cumulative-min"), "x = min(x, y)");
  EXPECT_EQ(first("sort"), "x = min or max(x, p)");
  EXPECT_EQ(first("broadcast"), "x = x (received)");
}

TEST(Describe, BindsAsItIsRead) {
  EXPECT_THAT(describe("program p\nword x : real = input\nreceive y = x from i - 1\n"
                       "x = 2 * (x - y) + abs(y)\noutput x\n"),
              ElementsAre("x = 2 (x - y) + abs(y)"));
  EXPECT_THAT(describe("program p\nword x : int[0..9] = input\nreceive y = x from i - 1\n"
                       "word d : int[0..9] = choose(x >= y, x, y)\noutput d\n"),
              ElementsAre("d = choose([x >= y], x, y)"));
}

TEST(Describe, CutsWhatIsLong) {
  std::string text = "program p\nword x : real = input\nreceive y = x from i - 1\n";
  for (int k = 0; k < 40; ++k) text += "x = min(x + y, max(x, y) - x)\n";
  const std::vector<std::string> lines = describe(text + "output x\n", 30);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0].size(), 30 + std::string("…").size());
  EXPECT_TRUE(lines[0].starts_with("x = min("));
  EXPECT_TRUE(lines[0].ends_with("…"));
  for (size_t longest = 20; longest < 60; ++longest) {  // a part that was cut is never cut again
    std::string line = describe(text + "output x\n", longest).at(0);
    for (size_t k = line.find("…"); k != std::string::npos; k = line.find("…")) line.erase(k, 3);
    EXPECT_TRUE(std::ranges::all_of(line, [](char c) { return c > 0; })) << longest;
  }
}

}  // namespace
}  // namespace posattn
