#include "posattn/programs/checking/program_task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "posattn/programs/language/language.h"

namespace posattn {
namespace {

TEST(ProgramTask, AnswersAsTheInterpreterDoes) {
  const StaticProgram program = library_program("sort", 4);
  const ProgramTask task(program);
  const std::vector<float> input = {3, -1, 2.5F, 0};
  std::vector<float> answer(4);
  task.solve(4, input, answer);
  EXPECT_THAT(answer, testing::ElementsAre(-1, 0, 2.5F, 3));
  EXPECT_EQ(task.shape(4).real_nodes, 4);
  const StaticProgram larger = library_program("min-sum", 4);  // two processors to a number
  EXPECT_EQ(ProgramTask(larger).shape(4).real_nodes, 8);
}

TEST(ProgramTask, WholeNumbersAreOfTheirType) {
  const StaticProgram program = compile_text(
      "program small\nword x : int[-2..3] = input\nx = x\noutput x\n", "small.par", 200);
  std::vector<float> input(200);
  RandomStream random(1, Purpose::evaluation_data, 0, 0);
  ProgramTask(program).draw(random, test_range(2, 1000, false), 200, input);
  for (const float x : {-2.0F, -1.0F, 0.0F, 1.0F, 2.0F, 3.0F}) {
    EXPECT_THAT(input, testing::Contains(x));
  }
  EXPECT_THAT(input, testing::Each(testing::AllOf(testing::Ge(-2), testing::Le(3))));
}

}  // namespace
}  // namespace posattn
