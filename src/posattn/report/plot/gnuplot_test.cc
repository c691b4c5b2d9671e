#include "posattn/report/plot/gnuplot.h"

#include <fmt/format.h>
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
  for (const char* hostile : {"it's `echo run` $HOME \\n @macro exit", "'first", "''",
                              "two '' and '''", "\"", "\\", "\\\"", "100 %s %% %d", "a_b^{c} @d &e",
                              "# ; , \\101", "(10 runs), #7", "\u00e4 \u2264 `"}) {
    EXPECT_EQ(run_gnuplot(fmt::format("set print '-'\nprint {}\n", gnuplot_quote(hostile))),
              std::string(hostile) + "\n");
  }
  EXPECT_EQ(gnuplot_quote("a'\nexit"), "\"a\\047 exit\"");
}

TEST(Gnuplot, QuotedTextFitsIntoXml) {
  EXPECT_EQ(gnuplot_quote("a\xff\x7f"), "\"a\xef\xbf\xbd\xef\xbf\xbd\"");
}

TEST(Gnuplot, ElementsOfOnePageHaveTheirOwnIds) {
  EXPECT_EQ(svg_element("<?xml?><svg id='gpDot'><title>Gnuplot</title>\n<desc>by gnuplot</desc>"
                        "<use xlink:href='#gpDot'/><text>id='x'</text></svg>",
                        {"one", "Loss & error", "two <lines>"}),
            "<svg role=\"img\" aria-labelledby=\"one_title one_desc\" id='one_gpDot'>\n"
            "<title id=\"one_title\">Loss &amp; error</title>\n"
            "<desc id=\"one_desc\">two &lt;lines&gt;</desc>\n"
            "<use xlink:href='#one_gpDot'/><text>id='x'</text></svg>");
}

TEST(Gnuplot, ElementsFollowDarkPages) {
  const std::string svg = svg_element(
      "<svg><g stroke=\"rgb( 85,  85,  85)\" fill=\"rgb(34,34,34)\" color=\"black\"/>"
      "<polygon fill = 'rgb(  0, 114, 178)'/><use color='#FFFFFF'/><text>rgb(1,2,3) "
      "\"black\"</text></svg>",
      {"a", "t", "d"});
  EXPECT_THAT(svg, HasSubstr("<g stroke=\"#555555\" fill=\"#222222\" color=\"#000000\"/>"));
  EXPECT_THAT(svg, HasSubstr("<polygon fill='#0072b2'/><use color='#ffffff'/>"));
  EXPECT_THAT(svg, HasSubstr("<text>rgb(1,2,3) \"black\"</text>"));
  for (const char* rule : {"[stroke=\"#555555\"]{stroke:", "[fill=\"#222222\"]{fill:",
                           "[color=\"#000000\"]{color:", "[fill=\"#0072b2\"]{fill:"}) {
    EXPECT_THAT(svg, HasSubstr(rule));
  }
}

TEST(Gnuplot, ReportsAFailingScript) {
  try {
    run_gnuplot("plot nothing_of_this_name\n");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::failed);
    EXPECT_THAT(error.problem(), HasSubstr("nothing_of_this_name"));
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
    EXPECT_THAT(error.problem(), HasSubstr("not installed"));
    EXPECT_EQ(error.expected(), "gnuplot on the PATH");
    EXPECT_THAT(error.hint(), HasSubstr("gnuplot-nox"));
  }
  setenv("PATH", path.c_str(), 1);
}

}  // namespace
}  // namespace posattn
