#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "posattn/programs/language/language.h"
#include "posattn/programs/language/text_program_test.h"

namespace posattn {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

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

}  // namespace
}  // namespace posattn
