#include "posattn/base/toml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "posattn/base/error.h"
#include "posattn/base/file.h"
#include "posattn/base/temporary_folder_test.h"

namespace posattn {
namespace {

using testing::HasSubstr;

std::string toml_message(const std::string& text) {
  try {
    parse_toml(text, "t.toml", "something else");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::configuration);
    return error.what();
  }
  return "no error";
}

std::string repeated(int count, const std::string& part) {
  std::string text;
  for (int i = 0; i < count; ++i) text += part;
  return text;
}

TEST(Toml, ReadsTables) {
  const toml::table table = parse_toml("a.b = 1\n[c]\nd = [1.5, 2.5]\n", "t.toml", "");
  EXPECT_EQ(table["a"]["b"].value<int>(), 1);
  EXPECT_EQ(table["c"]["d"][1].value<double>(), 2.5);
}

TEST(Toml, NamesTheLineOfAMistake) {
  EXPECT_THAT(toml_message("a = 1\nb = \n"), HasSubstr("t.toml:2 is not TOML"));
  EXPECT_THAT(toml_message("a = \n"), HasSubstr("something else"));
}

// A hundred thousand levels, in every way to write them.
TEST(Toml, RefusesDeepNesting) {
  const std::string key = repeated(99999, "a.") + "a";
  const std::string quoted = repeated(99999, "\"a\".") + "'a'",
                    spaced = repeated(99999, "a . ") + "a";
  for (const std::string& deep : {key, quoted, spaced}) {
    const std::string expected = "t.toml:2: a key of too many parts";
    EXPECT_THAT(toml_message("\n" + deep + " = 1\n"), HasSubstr(expected));
    EXPECT_THAT(toml_message("\n[" + deep + "]\n"), HasSubstr(expected));
    EXPECT_THAT(toml_message("\n[[" + deep + "]]\n"), HasSubstr(expected));
    EXPECT_THAT(toml_message("\nx = [1, {" + deep + " = 1}]\n"), HasSubstr(expected));
    // Whatever a string holds, it ends where the library ends it.
    for (const char* before : {R"('\')", R"("\"")", R"('''"''''')", R"("""\"""""")", R"("""""""")",
                               "'''\n.\n'''", "\"#\""}) {
      EXPECT_EQ(toml_message("x = [" + std::string(before) + ", {a = 1}]\n"), "no error");
      EXPECT_THAT(toml_message("x = [" + std::string(before) + ", {" + deep + " = 1}]\n"),
                  HasSubstr("too many parts"))
          << before;
    }
  }
  EXPECT_THAT(toml_message("a = " + std::string(100000, '[')), HasSubstr("not TOML"));
  EXPECT_THAT(toml_message(repeated(100000, "a={")), HasSubstr("not TOML"));
}

TEST(Toml, TheDeepestThatPassesIsFreed) {
  const std::string step = repeated(15, "a.") + "a = {";
  const toml::table table =
      parse_toml(repeated(250, step) + repeated(250, "}") + "\n", "t.toml", "");
  EXPECT_EQ(table.size(), 1u);
}

TEST(Toml, DotsOutsideOfKeysAreNoParts) {
  const std::string dots(100, '.');
  std::string numbers = "1.5";
  for (int i = 0; i < 100; ++i) numbers += ", 1.5";
  EXPECT_EQ(toml_message("# " + dots + "\na = \"" + dots + "\" # " + dots + "\nb = '" + dots +
                         "'\nc = \"\"\"\n" + dots + "\n\"\"\"\nd = [" + numbers + "]\n#"),
            "no error");
  std::string keys;
  for (int i = 0; i < 100; ++i) keys += "a." + std::to_string(i) + " = 1.5\n";
  EXPECT_EQ(toml_message(keys), "no error");
}

TEST(Toml, LargeFilesAreRefused) {
  const TemporaryFolder folder;
  write_file(folder.path() / "a.toml", "a = 1\n");
  EXPECT_EQ(read_toml_file(folder.path() / "a.toml"), "a = 1\n");
  write_file(folder.path() / "b.toml", std::string((1 << 20) + 1, '#'));
  try {
    read_toml_file(folder.path() / "b.toml");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::configuration);
    EXPECT_THAT(error.problem(), HasSubstr("too large (1048577 bytes)"));
  }
}

}  // namespace
}  // namespace posattn
