#include <gtest/gtest.h>

#include "posattn/programs/form/builder.h"
#include "posattn/programs/form/static_program.h"

namespace posattn {
namespace {

using Way = std::vector<std::optional<CarriedBy>>;

TEST(Follow, AMinimumComesFromWhoeverHadIt) {
  ProgramBuilder program("min", 4);
  const Variable x = program.input("x");
  for (const int d : {1, 2}) {
    const Variable y = program.receive("y", x, [d](int i) { return i - d; });
    program.set(x, minimum(program[x], program[y]));
  }
  const StaticProgram scan = program.finish(x);
  const std::vector<double> input{-5, 3, 8, 2};
  EXPECT_EQ(follow(scan, input, 3), (Way{CarriedBy{0, 0}, CarriedBy{1, 0}, CarriedBy{3, 0}}));
}

TEST(Follow, AMessageComesFromItsSender) {
  ProgramBuilder program("scatter", 3);
  const Variable d = program.input("d", WordType::integer(0, 2));
  const Variable x = program.input("x");
  const StaticProgram scatter = program.finish(program.send("y", x, d, true));
  const std::vector<double> input{1, 10, 2, 20, 0, 30};
  const Way way = follow(scatter, input, 0);
  ASSERT_EQ(way.size(), 2u);
  EXPECT_EQ(way[0], (CarriedBy{2, scatter.inputs[1]}));
}

TEST(Follow, AConstantComesFromNobody) {
  ProgramBuilder program("three", 2);
  const Variable x = program.input("x");
  program.set(x, constant_value(3));
  const Way way = follow(program.finish(x), std::vector<double>{1, 2}, 1);
  EXPECT_FALSE(way[0]);
}

}  // namespace
}  // namespace posattn
