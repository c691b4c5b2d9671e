#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "posattn/base/error.h"
#include "posattn/report/page/report_input.h"
#include "posattn/report/page/sample_report_test.h"
#include "posattn/report/plot/line_style.h"
#include "posattn/report/well_formed_test.h"

namespace posattn {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Page, IsWellFormedAndSelfContained) {
  const std::string page = report_page(sample_report());
  EXPECT_EQ(markup_problem(page), "");
  for (const char* outside : {"src=", "<script", "@import", "<link", "url("}) {
    EXPECT_THAT(page, Not(HasSubstr(outside))) << outside;
  }
}

TEST(Page, SaysWhatTheReaderSees) {
  const std::string page = report_page(sample_report());
  // 20 against 0.02 at c = 10.
  EXPECT_THAT(page, HasSubstr("At c = 10 the median squared error of standard is 1000 times that "
                              "of positional."));
  EXPECT_THAT(page, HasSubstr("<td>0.02<small>0.01 \u2013 0.03</small></td>"));
  EXPECT_THAT(page, HasSubstr("[\u221220,\u00a020]"));
  EXPECT_THAT(page, HasSubstr("Make it again"));
  EXPECT_THAT(page, HasSubstr("layer 3, head 1"));
  EXPECT_THAT(page, Not(HasSubstr("did not finish")));
}

TEST(Page, FitsPhonesAndDarkPages) {
  const std::string standard =
      fmt::format("<span class=\"dot style{}\"></span>standard", style_of("standard"));
  const std::string page = report_page(sample_report());
  for (const char* part :
       {"<div class=\"narrow\"><svg role=\"img\"", "prefers-color-scheme: dark",
        "id=\"scalesc_narrow_title\"", "class=\"scroll\" role=\"region\"", standard.c_str()}) {
    EXPECT_THAT(page, HasSubstr(part)) << part;
  }
  EXPECT_THAT(page, Not(HasSubstr("<div class=\"wide\"><table")));
}

// 1 in one map, 0.6 in the others: the scale of all ends at 1.
TEST(Page, AttentionMapsShareOneScale) {
  ReportInput input = sample_report();
  input.runs[0].attention[0].weights[0] = 1;
  const std::string page = report_page(input);
  EXPECT_THAT(page, HasSubstr(">1 attention weight<"));
  EXPECT_THAT(page, Not(HasSubstr(">0.6 attention weight<")));
}

TEST(Page, EscapesWhateverComesFromOutside) {
  const std::string hostile = "</pre></style><script>alert(1)</script>&\"'";
  ReportInput input = sample_report();
  input.title = input.task = hostile;
  input.commands = {hostile};
  for (RunReport& run : input.runs) {
    run.architecture = run.execution = run.manifest = run.status = hostile;
    for (AttentionMaps& maps : run.attention) maps.caption = hostile;
  }
  const std::string page = report_page(input);
  EXPECT_EQ(markup_problem(page), "");
  EXPECT_THAT(page, Not(HasSubstr("<script")));
}

TEST(Page, LinksThePlaygroundBesideIt) {
  ReportInput input = sample_report();
  EXPECT_THAT(report_page(input), Not(HasSubstr("playground")));
  input.playground = "javascript:a \"b\"?.html";
  const std::string page = report_page(input);
  EXPECT_THAT(page, HasSubstr("<a href=\"./javascript%3Aa%20%22b%22%3F.html\">"));
  EXPECT_EQ(markup_problem(page), "");
}

TEST(Page, NamesRunsThatDidNotFinish) {
  ReportInput input = sample_report();
  input.runs[4].status = "diverged";
  EXPECT_THAT(report_page(input), HasSubstr("1 of 3 runs of standard did not finish"));
}

TEST(Page, WorksWithoutTestsCurvesOrMaps) {
  ReportInput input = sample_report();
  input.runs.resize(1);
  input.runs[0].curve.clear();
  input.runs[0].tests.clear();
  input.runs[0].attention.clear();
  const std::string page = report_page(input);
  EXPECT_EQ(markup_problem(page), "");
  EXPECT_THAT(page, HasSubstr("no test results"));
  EXPECT_THAT(page, Not(HasSubstr("Learned attention")));
}

TEST(Page, ShowsErrorsThatAreNotNumbers) {
  ReportInput input = sample_report();
  for (RunReport& run : input.runs) run.tests.back().value = NAN;
  const std::string page = report_page(input);
  EXPECT_EQ(markup_problem(page), "");
  EXPECT_THAT(page, HasSubstr("not a number"));
  EXPECT_THAT(page, Not(HasSubstr("At c = 10")));
}

// Rows of a task of classes, tested along an axis of its own.
TEST(Page, ShowsTheLossThatWasMeasured) {
  ReportInput input = sample_report();
  input.loss = Loss::cross_entropy;
  input.numbers = false;
  for (RunReport& run : input.runs) {
    run.tests = {{Split::test, "<share>", 0.5, "cross_entropy", 0.25},
                 {Split::test, "<share>", 0.5, "label_error", 0.125}};
  }
  const std::string page = report_page(input);
  EXPECT_EQ(markup_problem(page), "");
  EXPECT_THAT(page, HasSubstr("Cross-entropy on fresh samples"));
  EXPECT_THAT(page, HasSubstr("<th>&lt;share&gt;</th>"));
  EXPECT_THAT(page, HasSubstr("<td>0.25<small>"));
  EXPECT_THAT(page, HasSubstr("<td>12.5 %<small>"));
  EXPECT_THAT(page, Not(HasSubstr("squared error")));
  EXPECT_THAT(page, Not(HasSubstr("MSE")));
  EXPECT_THAT(page, Not(HasSubstr("than any they had seen")));
  EXPECT_THAT(page, HasSubstr("on samples of length 8. Trained"));
  EXPECT_THAT(page, Not(HasSubstr("values in")));
  EXPECT_THAT(page, HasSubstr(">Test error</h2>"));
  EXPECT_THAT(page, HasSubstr("share of wrong classes against"));
  for (RunReport& run : input.runs) {
    run.tests = {
        {Split::test, "c", 10, "cross_entropy", run.architecture == "standard" ? 2.0 : 1.0}};
  }
  EXPECT_THAT(report_page(input), HasSubstr("At c = 10 the median cross-entropy of standard is 2 "
                                            "times that of positional."));
}

TEST(Page, TheLossHasItsNameBeforeAnyTest) {
  ReportInput input = sample_report();
  input.loss = Loss::cross_entropy;
  for (RunReport& run : input.runs) run.tests.clear();
  const std::string page = report_page(input);
  EXPECT_THAT(page, HasSubstr("cross-entropy on a logarithmic axis against epoch"));
  EXPECT_THAT(page, Not(HasSubstr("squared error")));
}

TEST(Page, RefusesAnEmptyReport) { EXPECT_THROW(report_page(ReportInput{}), Error); }

}  // namespace
}  // namespace posattn
