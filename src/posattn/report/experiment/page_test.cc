#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "posattn/base/error.h"
#include "posattn/report/experiment/results.h"
#include "posattn/report/experiment/sample_experiment_test.h"
#include "posattn/report/well_formed_test.h"

namespace posattn {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string page_of(const ExperimentResults& results) {
  return experiment_page("Results", {results});
}

TEST(ExperimentPage, IsWellFormedAndSelfContained) {
  ExperimentResults quick = sample_experiment_results();
  quick.experiment.reduction = "quick: 20 epochs";
  const std::string page = experiment_page("Results", {sample_experiment_results(), quick});
  EXPECT_EQ(markup_problem(page), "");
  for (const char* outside : {"src=", "<script", "@import", "<link", "url("}) {
    EXPECT_THAT(page, Not(HasSubstr(outside))) << outside;
  }
  EXPECT_THAT(page, HasSubstr("quick: 20 epochs"));
  EXPECT_THAT(page, HasSubstr("not expected to agree"));
}

TEST(ExperimentPage, FitsAnyWindow) {
  const std::string page = page_of(sample_experiment_results());
  EXPECT_THAT(page, HasSubstr("<svg role=\"img\" aria-labelledby=\"figure1_title figure1_desc\""));
  EXPECT_THAT(page, HasSubstr("<div class=\"narrow\"><svg role=\"img\" "
                              "aria-labelledby=\"figure1_narrow_title figure1_narrow_desc\""));
  // Every table scrolls by itself.
  size_t tables = 0, scrolling = 0;
  for (size_t at = page.find("<table"); at != std::string::npos; at = page.find("<table", at + 1)) {
    ++tables;
    const std::string before = page.substr(page.rfind("<div", at), at - page.rfind("<div", at));
    scrolling += before.starts_with("<div class=\"scroll") && before.ends_with("tabindex=\"0\">");
  }
  EXPECT_GE(tables, 3u);
  EXPECT_EQ(scrolling, tables);
}

TEST(ExperimentPage, SaysWhatWasFound) {
  const std::string page = page_of(sample_experiment_results());
  for (const char* text :
       {"Reproduces Figure 4. Trained on [-2, 2].", "<td>12 of 12</td>", "<td>16 of 16</td>",
        "posattn reproduce value-range --results results", "&quot;runs&quot;: 12", "samples = 2000",
        "line standard: architecture = standard", "<td>4 of 4</td>",
        "<td>0.667</td>",                   // ours / published
        "<td>0.2</td>", "<td>200</td>"}) {  // medians at c = 10
    EXPECT_THAT(page, HasSubstr(text)) << text;
  }
  EXPECT_THAT(page, HasSubstr("<td>3.00<small>"));  // growth of positional
  EXPECT_THAT(page, HasSubstr("<td>4.00<small>"));
  EXPECT_THAT(page, Not(HasSubstr("differs")));
  EXPECT_THAT(page, Not(HasSubstr("missing")));
}

TEST(ExperimentPage, NamesPointsThatDiffer) {
  ExperimentResults results = sample_experiment_results();
  for (PublishedPoint& point : results.published) {
    point.correction = "divided by <8>";
    if (point.point.line != "standard" || point.point.task != "cumulative-sum") continue;
    for (double* value : {&point.point.minimum, &point.point.median, &point.point.maximum}) {
      *value *= 100;
    }
  }
  const std::string page = page_of(results);
  EXPECT_EQ(markup_problem(page), "");
  EXPECT_THAT(page, HasSubstr("<td>12 of 16 (<b>differs</b>)</td><td>12</td>"));
  EXPECT_THAT(page, HasSubstr("The 4 points that do not agree"));
  EXPECT_THAT(page, HasSubstr("<td>0 of 4</td><td>0</td><td>4</td><td><b>differs</b></td>"));
  EXPECT_THAT(page, HasSubstr("divided by &lt;8&gt;"));
}

TEST(ExperimentPage, WhatWasReducedDoesNotDiffer) {
  ExperimentResults results = sample_experiment_results();
  results.experiment.reduction = "quick: 20 epochs";
  for (PublishedPoint& point : results.published) {
    for (double* value : {&point.point.minimum, &point.point.median, &point.point.maximum}) {
      *value *= 1000;
    }
  }
  const std::string page = page_of(results);
  EXPECT_THAT(page, HasSubstr("<td>0 of 16 (reduced)</td>"));
  EXPECT_THAT(page, HasSubstr("<td>0 of 4</td><td>0</td><td>4</td><td>reduced</td>"));
  EXPECT_THAT(page, Not(HasSubstr("differs")));
}

TEST(ExperimentPage, CountsWhatIsNotThere) {
  ExperimentResults results = sample_experiment_results();
  results.tally.missing = 3;
  results.tally.diverged = 1;
  EXPECT_THAT(page_of(results), HasSubstr("Of 12 runs: 3 missing, 1 diverged."));
}

TEST(ExperimentPage, ShowsDivergence) {
  ExperimentResults results = sample_experiment_results();
  for (Curve& curve : results.curves) {
    if (curve.line == "standard") {
      for (CurvePoint& point : curve.points) point.runs[0].second = INFINITY;
    }
  }
  std::string page = page_of(results);
  EXPECT_EQ(markup_problem(page), "");
  EXPECT_THAT(page, Not(HasSubstr("<td>diverged</td>")));  // two of three runs did not
  EXPECT_THAT(page, HasSubstr("<td>300</td>"));            // at c = 10: 200 and 300 are left
  for (Curve& curve : results.curves) {
    if (curve.line == "standard") curve.points[0].runs[1].second = INFINITY;
  }
  EXPECT_THAT(page_of(results), HasSubstr("<td>diverged</td>"));
  for (Curve& curve : results.curves) {
    for (CurvePoint& point : curve.points) {
      for (auto& [seed, value] : point.runs) value = INFINITY;
    }
  }
  page = page_of(results);
  EXPECT_EQ(markup_problem(page), "");
  EXPECT_THAT(page, HasSubstr("No point can be drawn"));
}

TEST(ExperimentPage, EscapesWhateverComesFromOutside) {
  const std::string hostile = "</pre></style><script>alert(1)</script>&\"'\xff";
  ExperimentResults results = sample_experiment_results();
  for (Curve& curve : results.curves) curve.task = curve.line = hostile;
  for (PublishedPoint& point : results.published) {
    point.point.task = point.point.line = point.correction = hostile;
  }
  Experiment& experiment = results.experiment;
  experiment.tasks = {hostile};
  experiment.lines = {{hostile, {{hostile, hostile}}}};
  experiment.title = experiment.paper = experiment.description = experiment.reduction =
      experiment.axis.label = experiment.output_name = hostile;
  results.command = results.manifest = hostile;
  const std::string page = experiment_page(hostile, {results});
  EXPECT_EQ(markup_problem(page), "");
  EXPECT_THAT(page, Not(HasSubstr("<script")));
}

TEST(ExperimentPage, WorksWithoutPublishedResults) {
  ExperimentResults results = sample_experiment_results();
  results.published.clear();
  std::string page = page_of(results);
  EXPECT_EQ(markup_problem(page), "");
  EXPECT_THAT(page, HasSubstr("<td>not published</td>"));
  EXPECT_THAT(page, HasSubstr("Growth with c"));
  results.experiment.metric = &find_metric("accuracy");
  page = page_of(results);
  EXPECT_EQ(markup_problem(page), "");
  EXPECT_THAT(page, Not(HasSubstr("Growth with c")));
}

TEST(ExperimentPage, NotesGiveOurNumbersForTheWholeExperimentOnly) {
  ExperimentResults results = sample_experiment_results();
  std::string page = page_of(results);
  EXPECT_THAT(page, HasSubstr("Measured here: c<sup>3.00</sup> to c<sup>3.00</sup>, over 2 tasks"));
  EXPECT_THAT(page, HasSubstr("medians: cumulative-min: standard 0.02, positional 2.0e-04.</li>"));
  results.experiment.is_embedded = false;  // somebody's own
  EXPECT_THAT(page_of(results), Not(HasSubstr("Measured here")));
  results.experiment.is_embedded = true;
  results.experiment.reduction = "quick";
  page = page_of(results);
  EXPECT_THAT(page, Not(HasSubstr("Measured here")));
  EXPECT_THAT(page, HasSubstr("What to know about the published results"));
}

TEST(ExperimentPage, NotesTestWhatTheyMeasured) {
  ExperimentResults results = sample_experiment_results();
  results.experiment.seeds = {0, 1, 2, 3, 4, 5};
  results.curves = sample_curves(results.experiment);
  // Positional is better with every seed: 2 of 2^6 choices of signs.
  EXPECT_THAT(page_of(results), HasSubstr("positional 3.5e-04 (p = 0.031, paired by seed)"));
}

TEST(ExperimentPage, RefusesNothing) { EXPECT_THROW(experiment_page("Results", {}), Error); }

}  // namespace
}  // namespace posattn
