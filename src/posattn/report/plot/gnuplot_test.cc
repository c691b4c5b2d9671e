#include "posattn/report/plot/gnuplot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "posattn/base/error.h"

namespace posattn {
namespace {

using testing::HasSubstr;

TEST(Gnuplot, ReturnsWhatTheScriptWrites) {
  EXPECT_EQ(run_gnuplot("set print '-'\nprint 2 + 3\n"), "5\n");
}

TEST(Gnuplot, QuotedTextIsNeverRun) {
  const std::string hostile = "it's `echo run` $HOME \\n @macro\nexit";
  EXPECT_EQ(gnuplot_quote(hostile), "'it''s `echo run` $HOME \\n @macro exit'");
  EXPECT_EQ(run_gnuplot("set print '-'\nprint " + gnuplot_quote(hostile) + "\n"),
            "it's `echo run` $HOME \\n @macro exit\n");
}

TEST(Gnuplot, QuotedTextFitsIntoXml) {
  EXPECT_EQ(gnuplot_quote("a\xff\x7f"), "'a\xef\xbf\xbd\xef\xbf\xbd'");
}

TEST(Gnuplot, ElementsOfOnePageHaveTheirOwnIds) {
  EXPECT_EQ(svg_element("<?xml?><svg id='gpDot'><use xlink:href='#gpDot'/></svg>", "one"),
            "<svg id='one_gpDot'><use xlink:href='#one_gpDot'/></svg>");
}

TEST(Gnuplot, ReportsAFailingScript) {
  try {
    run_gnuplot("plot nothing_of_this_name\n");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::failed);
    EXPECT_THAT(error.expected(), HasSubstr("nothing_of_this_name"));
  }
}

TEST(Gnuplot, SaysHowToInstallIt) {
  const char* before = std::getenv("PATH");
  const std::string path = before == nullptr ? "" : before;
  setenv("PATH", "/nonexistent", 1);
  try {
    run_gnuplot("print 1\n");
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::failed);
    EXPECT_THAT(error.hint(), HasSubstr("gnuplot-nox"));
  }
  setenv("PATH", path.c_str(), 1);
}

}  // namespace
}  // namespace posattn
