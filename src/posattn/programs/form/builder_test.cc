#include "posattn/programs/form/builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "posattn/base/error.h"
#include "posattn/base/random.h"

namespace posattn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::vector<double> run(const StaticProgram& program, const std::vector<double>& input) {
  return run_static<double>(program, input, 1);
}

StaticProgram prefix_sums(int n) {
  ProgramBuilder program("sums", n);
  const Variable x = program.input("x");
  for (int d = 1; d < n; d *= 2) {
    const Variable y = program.receive(
        "y", x, [&](int i) { return i - d; }, 4);
    program.set(x, add(program[x], program[y]), 5);
  }
  return program.finish(x);
}

TEST(ProgramBuilder, PrefixSums) {
  const StaticProgram program = prefix_sums(6);
  EXPECT_THAT(program.rounds, SizeIs(3));
  EXPECT_THAT(program.rounds[0].lines, ElementsAre(4, 5));
  EXPECT_THAT(program.words, SizeIs(1));  // y does not outlive its round
  EXPECT_TRUE(program.zero_stays_zero());
  EXPECT_THAT(run(program, {1, 2, 3, 4, 5, 6}), ElementsAre(1, 3, 6, 10, 15, 21));
}

TEST(ProgramBuilder, MissingNeighboursReadZero) {
  ProgramBuilder program("shift", 3);
  const Variable x = program.input("x");
  const Variable y = program.receive("y", x, [](int i) { return i + 1; });
  program.set(x, program[y]);
  EXPECT_THAT(run(program.finish(x), {1, 2, 3}), ElementsAre(2, 3, 0));
}

TEST(ProgramBuilder, ReceivesShareARoundUntilTheirSourceChanges) {
  ProgramBuilder program("rounds", 3);
  const Variable x = program.input("x");
  const Variable sum = program.word("sum", {});
  const Variable before = program.receive("before", x, [](int i) { return i - 1; });
  program.set(sum, add(program[x], program[before]));
  const Variable after =
      program.receive("after", x, [](int i) { return i + 1; });  // x is as it was
  program.set(sum, add(program[sum], program[after]));
  const Variable next = program.receive("next", sum, [](int i) { return i + 1; });  // sum is not
  program.set(x, program[next]);
  const StaticProgram finished = program.finish(x);
  EXPECT_THAT(finished.rounds, SizeIs(2));
  EXPECT_THAT(finished.rounds[0].receives, SizeIs(2));
  EXPECT_THAT(run(finished, {1, 2, 3}), ElementsAre(6, 5, 0));
}

TEST(ProgramBuilder, AssignmentsFollowEachOther) {
  ProgramBuilder program("local", 2);
  const Variable x = program.input("x");
  const Variable y = program.word("y", {});
  program.set(y, add(program[x], program[x]));
  program.set(x, subtract(program[y], scale(0.5, program[x])));
  program.set(x, maximum(program[x], program[y]));
  EXPECT_THAT(run(program.finish(x), {1, -2}), ElementsAre(2, -3));
}

// Comparators by position take two reads; other functions are gated by what is received.
TEST(ProgramBuilder, PositionsDecideByRouting) {
  ProgramBuilder program("exchange", 4);
  const Variable x = program.input("x");
  const Variable p = program.receive("p", x, [](int i) { return i ^ 1; });
  const std::vector<bool> lower = {true, false, true, false};
  program.set(x, lower, minimum(program[x], program[p]), maximum(program[p], program[x]));
  const StaticProgram finished = program.finish(x);
  ASSERT_THAT(finished.rounds, SizeIs(1));
  EXPECT_THAT(finished.rounds[0].receives, SizeIs(2));
  EXPECT_TRUE(finished.zero_stays_zero());
  EXPECT_THAT(run(finished, {5, 3, -1, 2}), ElementsAre(3, 5, -1, 2));
}

TEST(ProgramBuilder, OtherFunctionsAreGated) {
  ProgramBuilder program("gated", 4);
  const Variable x = program.input("x");
  const Variable p = program.receive("p", x, [](int i) { return i ^ 1; });
  const std::vector<bool> even = {true, false, true, false};
  program.set(x, even, add(program[x], scale(2, program[p])), absolute(program[p]));
  const StaticProgram finished = program.finish(x);
  EXPECT_TRUE(finished.zero_stays_zero());
  EXPECT_THAT(run(finished, {5, -3, -1, 2}), ElementsAre(-1, 5, 3, 1));
}

TEST(ProgramBuilder, ConstantsByPositionNeedAPositionBit) {
  ProgramBuilder program("constants", 3);
  const Variable x = program.input("x");
  const std::vector<bool> first = {true, false, false};
  program.set(x, first, constant_value(7), add(program[x], constant_value(1)));
  const StaticProgram finished = program.finish(x);
  EXPECT_FALSE(finished.zero_stays_zero());
  EXPECT_THAT(run(finished, {1, 2, 3}), ElementsAre(7, 3, 4));
}

TEST(ProgramBuilder, WeightedReads) {
  ProgramBuilder program("differences", 3);
  const Variable x = program.input("x");
  Route route;
  route.weighted = {{{0, 1.0}}, {{0, -1.0}, {1, 1.0}}, {{1, -1.0}, {2, 1.0}}};
  const Variable y = program.receive("y", x, route);
  program.set(x, program[y]);
  EXPECT_THAT(run(program.finish(x), {1, 3, 7}), ElementsAre(1, 2, 4));
}

TEST(ProgramBuilder, WhatTheOutputDoesNotNeedGoes) {
  ProgramBuilder program("dead", 3);
  const Variable x = program.input("x");
  const Variable unused = program.word("unused", {});
  const Variable y = program.receive("y", x, [](int i) { return i - 1; });
  program.set(unused, add(program[x], program[y]));
  const Variable z = program.receive("z", unused, [](int i) { return i - 1; });
  program.set(unused, program[z]);
  const StaticProgram finished = program.finish(x);
  EXPECT_THAT(finished.rounds, SizeIs(0));
  EXPECT_THAT(finished.words, SizeIs(1));
  EXPECT_THAT(run(finished, {1, 2, 3}), ElementsAre(1, 2, 3));
}

TEST(ProgramBuilder, EqualComputationsHappenOnce) {
  ProgramBuilder program("shared", 2);
  const Variable x = program.input("x");
  const Variable y = program.receive("y", x, [](int i) { return 1 - i; });
  program.set(x, add(minimum(program[x], program[y]), minimum(program[y], program[x])));
  const StaticProgram finished = program.finish(x);
  const auto& instructions = finished.rounds[0].instructions;
  EXPECT_EQ(std::ranges::count(instructions, Expression::Kind::minimum, &Instruction::kind), 1);
  EXPECT_THAT(run(finished, {1, 2}), ElementsAre(2, 2));
}

TEST(ProgramBuilder, IntegersAndBits) {
  ProgramBuilder program("rank", 4);
  const Variable x = program.input("x", WordType::integer(0, 9));
  const Variable rank = program.word("rank", WordType::integer(0, 3));
  for (int d = 1; d < 4; ++d) {
    const Variable y = program.receive("y", x, [&](int i) { return (i + d) % 4; });
    const Value larger = at_least(program[x], add(program[y], constant_value(1)));
    EXPECT_EQ(larger->type, WordType::bit());
    program.set(rank, minimum(add(program[rank], larger), constant_value(3)));
  }
  EXPECT_THAT(run(program.finish(rank), {4, 9, 0, 4}), ElementsAre(1, 3, 0, 1));
}

template <class Action>
void expect_refused(Action action, const std::string& problem, const std::string& expected) {
  try {
    action();
    ADD_FAILURE() << "accepted: " << problem;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::configuration);
    EXPECT_THAT(error.problem(), HasSubstr(problem));
    EXPECT_THAT(error.expected(), HasSubstr(expected));
  }
}

TEST(ProgramBuilder, RefusesWhatCannotBeExact) {
  ProgramBuilder program("refused", 2);
  const Variable x = program.input("x");
  const Variable k = program.word("k", WordType::integer(0, 3));
  expect_refused([&] { at_least(program[x], constant_value(0)); }, "comparison of real", "gap");
  expect_refused([&] { select(program[x], program[x], program[x]); }, "selection by a value",
                 "a bit");
  expect_refused([&] { program.set(k, program[x]); }, "type real for word 'k'", "int[0..3]");
  expect_refused([&] { program.set(k, add(program[k], constant_value(1))); },
                 "type int[1..4] for word 'k'", "int[0..3]");
  expect_refused([&] { program.word("b", WordType::bit(), {0, 2}); }, "starts with 2", "bit");
  expect_refused([&] { program.send("y", k, x); }, "messages to 'x', a real", "an integer");
}

// A word that exists keeps its type: what it receives is of a smaller one.
TEST(ProgramBuilder, ReceivingIntoAWord) {
  ProgramBuilder program("into", 3);
  const Variable x = program.input("x", WordType::integer(0, 3));
  const Variable y = program.word("y", WordType::integer(0, 9));
  program.receive(y, x, [](int i) { return i + 1; });
  program.set(y, add(program[y], constant_value(5)));
  program.receive(y, y, [](int i) { return i - 1; });
  EXPECT_EQ(program.type_of(y), WordType::integer(0, 9));
  program.set(y, minimum(add(program[y], constant_value(2)), constant_value(9)));
  const Variable narrow = program.word("narrow", WordType::bit());
  EXPECT_THROW(program.receive(narrow, x, [](int i) { return i; }), Error);
  EXPECT_EQ(run(program.finish(y), {1, 2, 3}), (std::vector<double>{2, 9, 9}));
}

TEST(ProgramBuilder, WholeProgramsKeepWhatTheOutputDoesNotNeed) {
  const auto built = [](bool whole) {
    ProgramBuilder program("dead", 2);
    const Variable x = program.input("x"), s = program.word("s", {});
    program.set(s, scale(2, program[x]));
    const Variable y = program.receive("y", s, [](int i) { return 1 - i; });
    program.set(x, program[y]);
    program.set(s, constant_value(7));
    return program.finish({x}, whole);
  };
  EXPECT_EQ(built(false).words.size(), 2u);
  const StaticProgram whole = built(true);
  ASSERT_EQ(whole.words.size(), 3u);
  const std::vector<double> trace = trace_static(whole, std::vector<double>{1, 2});
  // x, s, y of both processors after the last round.
  EXPECT_EQ(std::vector<double>(trace.end() - 6, trace.end()),
            (std::vector<double>{4, 7, 4, 2, 7, 2}));
}

// Random inputs and lengths against the plain loop.
TEST(ProgramBuilder, PrefixSumsOfAnyLength) {
  RandomStream random(1, Purpose::test_data, 0, 0);
  for (int n = 1; n < 40; ++n) {
    std::vector<double> input(n), expected(n);
    for (double& x : input) x = std::floor(200 * random.uniform()) - 100;
    std::partial_sum(input.begin(), input.end(), expected.begin());
    EXPECT_EQ(run(prefix_sums(n), input), expected) << n;
  }
}

}  // namespace
}  // namespace posattn
