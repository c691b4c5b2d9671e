#include "posattn/report/svg/program_svg.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "posattn/base/error.h"
#include "posattn/programs/language/library.h"
#include "posattn/report/well_formed_test.h"

namespace posattn {
namespace {

using testing::HasSubstr;

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(ProgramSvg, EveryLibraryProgramIsWellFormed) {
  for (const LibraryProgram& entry : library_programs()) {
    for (const int n : {1, 2, 7, 8, 32}) {
      EXPECT_EQ(markup_problem(program_svg(library_program(entry.name, n))), "")
          << entry.name << " n = " << n;
    }
  }
}

TEST(ProgramSvg, AnArrowForEveryRead) {
  const std::string svg = program_svg(library_program("cumulative-sum", 8));
  EXPECT_THAT(svg, HasSubstr("cumulative-sum, 8 processors, 3 rounds"));
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(count(svg, ">round " + std::to_string(round) + "<"), 1);
  }
  EXPECT_EQ(count(svg, "marker-end="), 7 + 6 + 4);
  EXPECT_EQ(count(svg, "<circle"), 1 + 2 + 4);  // those without a neighbour
  EXPECT_EQ(count(svg, ">x = x + y<"), 3);
}

TEST(ProgramSvg, NamesAreEscaped) {
  StaticProgram program = library_program("cumulative-sum", 4);
  program.name = "a<b>&\"c\"";
  program.words[0].name = "<x>";
  const std::string svg = program_svg(program);
  EXPECT_EQ(markup_problem(svg), "");
  EXPECT_EQ(count(svg, "<x>"), 0);
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
