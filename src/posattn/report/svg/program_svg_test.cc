#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "posattn/base/error.h"
#include "posattn/programs/form/builder.h"
#include "posattn/programs/language/language.h"
#include "posattn/programs/messages/route_messages.h"
#include "posattn/report/drawn_rounds.h"
#include "posattn/report/well_formed_test.h"

namespace posattn {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(ProgramSvg, EveryLibraryProgramIsWellFormed) {
  for (const LibraryProgram& entry : library_programs()) {
    for (const int n : {1, 2, 7, 8, 32}) {
      const StaticProgram program = library_program(entry.name, n);
      if (n > 8 && program.inputs.size() > 1) continue;  // large pictures of the same kind
      const RoutedProgram routed = route_messages(program, Routing::automatic);
      EXPECT_EQ(markup_problem(program_svg(routed.program)), "") << entry.name << " n = " << n;
    }
  }
}

TEST(ProgramSvg, AnArrowForEveryRead) {
  const std::string svg = program_svg(library_program("cumulative-sum", 8));
  EXPECT_THAT(svg, HasSubstr("cumulative-sum, 8 processors, 3 rounds"));
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(count(svg, ">round " + std::to_string(round) + "<"), 1);
  }
  // One of each is the legend's.
  EXPECT_EQ(count(svg, "marker-end="), 7 + 6 + 4 + 1);
  EXPECT_EQ(count(svg, "<circle"), 1 + 2 + 4 + 1);  // those without a neighbour
  EXPECT_EQ(count(svg, ">x = x + y<"), 3);
}

TEST(ProgramSvg, LegendExplainsTheSignsThatOccur) {
  const std::string sum = program_svg(library_program("cumulative-sum", 8));
  EXPECT_THAT(sum, HasSubstr(">reads y<"));
  EXPECT_THAT(sum, HasSubstr(">reads nothing: a zero<"));
  EXPECT_THAT(sum, Not(HasSubstr("it reads itself")));
  EXPECT_THAT(sum, Not(HasSubstr("weight<")));
  const std::string minimum = program_svg(library_program("cumulative-min", 8));
  EXPECT_THAT(minimum, HasSubstr(">no arrow: it reads itself<"));
  EXPECT_THAT(minimum, Not(HasSubstr("a zero")));
  const std::string median = program_svg(library_program("cumulative-median", 8));
  EXPECT_GE(count(median, ">reads "), 2);  // a row for each colour
}

// A textbook's network: a line with two dots for each comparator, and no two on each other.
TEST(ProgramSvg, SortingNetworksHaveComparators) {
  const std::string sort = program_svg(library_program("sort", 8));
  EXPECT_EQ(count(sort, "<circle"), 2 * (6 * 4 + 1));  // six rounds of four; the legend's
  EXPECT_THAT(sort, HasSubstr(">the smaller number goes up, the larger one down<"));
  EXPECT_THAT(sort, Not(HasSubstr(">reads")));
  EXPECT_THAT(sort, Not(HasSubstr("marker-end")));
  const std::string falling =
      program_svg(compile_text("program falling\nword x : real = input\nlet partner = i xor 1\n"
                               "receive p = x from partner else i\n"
                               "x = max(x, p) if i < partner else min(x, p)\noutput x\n",
                               "falling", 4));
  EXPECT_EQ(count(falling, "marker-end"), 2 + 1);
  EXPECT_THAT(falling, HasSubstr(">the larger number goes where the head points<"));
}

TEST(Comparators, AreOfRoundsThatDoNothingElse) {
  const StaticProgram sort = library_program("sort", 4);
  const std::vector<Comparator> last = comparators_of(sort.rounds.back(), 4);
  ASSERT_EQ(last.size(), 2U);
  EXPECT_EQ(last[0].smaller, 0);
  EXPECT_EQ(last[0].larger, 1);
  EXPECT_TRUE(exchanges_of(sort.rounds.back()).front().keeps_minimum(sort.rounds.back(), 2));
  const StaticProgram sum = library_program("cumulative-sum", 4);
  EXPECT_TRUE(comparators_of(sum.rounds.front(), 4).empty());
}

// The weights of matrix-vector are cosines: about half of them negative.
TEST(ProgramSvg, NegativeWeightsHaveOpenHeads) {
  const std::string svg = program_svg(library_program("matrix-vector", 8));
  EXPECT_THAT(svg, HasSubstr(">open head: a negative weight<"));
  EXPECT_GT(count(svg, "url(#open0)"), 16);
  EXPECT_GT(count(svg, "url(#head0)"), 16);
  EXPECT_THAT(program_svg(library_program("sort", 8)), Not(HasSubstr("url(#open")));
}

TEST(ProgramSvg, GoesOnInTheNextRow) {
  const std::string svg = program_svg(library_program("sort", 32));  // 15 rounds
  const std::string width = svg.substr(svg.find("width=\"") + 7, 3);
  EXPECT_LE(std::stoi(width), 720);
  EXPECT_EQ(svg.substr(svg.find("width=\"") + 10, 1), "\"");
  EXPECT_GT(count(svg, ">31<"), 1);  // the processors are named in every row
}

TEST(ProgramSvg, FollowsDarkPagesAndSaysWhatItShows) {
  const std::string svg = program_svg(library_program("sort", 8));
  EXPECT_THAT(svg, HasSubstr("[fill=\"#ffffff\"]{fill:#15181c}"));
  EXPECT_THAT(svg, HasSubstr("[stroke=\"#6a3d9a\"]{stroke:"));
  EXPECT_THAT(svg, HasSubstr("<title>sort, 8 processors, 6 rounds</title>"));
  EXPECT_THAT(svg, HasSubstr("<desc>Who reads from whom"));
}

TEST(ProgramSvg, NamesAreEscaped) {
  StaticProgram program = library_program("cumulative-sum", 4);
  program.name = "a<b>&\"c\"";
  program.words[0].name = "<x>";
  const std::string svg = program_svg(program);
  EXPECT_EQ(markup_problem(svg), "");
  EXPECT_EQ(count(svg, "<x>"), 0);
}

TEST(ProgramSvg, RefusesMessagesThatGoWhereDataSays) {
  ProgramBuilder program("messages", 3);
  const Variable x = program.input("x", WordType::integer(0, 2));
  const StaticProgram sends = program.finish(program.send("y", x, x));
  EXPECT_THROW(program_svg(sends), Error);
}

TEST(ProgramSvg, RefusesWhatNobodyCouldRead) {
  EXPECT_EQ(markup_problem(program_svg(library_program("sort", 128))), "");
  try {
    program_svg(library_program("sort", 129));
    ADD_FAILURE() << "drawn";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_THAT(error.what(), HasSubstr("at most 128 and 200"));
  }
}

}  // namespace
}  // namespace posattn
