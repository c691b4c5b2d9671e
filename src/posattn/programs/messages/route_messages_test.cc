#include "posattn/programs/messages/route_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "posattn/base/error.h"
#include "posattn/base/random.h"
#include "posattn/evaluation/predict.h"
#include "posattn/programs/form/builder.h"
#include "posattn/programs/lowering/compile.h"

namespace posattn {
namespace {

using testing::HasSubstr;
using Values = std::vector<double>;

constexpr Routing all_routings[] = {Routing::gather, Routing::sort, Routing::benes,
                                    Routing::attention};

class Random {
 public:
  explicit Random(uint32_t number) : stream_(7, Purpose::test_data, number, 0) {}
  int below(int count) {
    return std::min(count - 1, static_cast<int>(stream_.uniform() * static_cast<float>(count)));
  }
  std::vector<int> permutation(int count) {
    std::vector<int> result(count);
    std::iota(result.begin(), result.end(), 0);
    for (int i = count - 1; i > 0; --i) std::swap(result[i], result[below(i + 1)]);
    return result;
  }

 private:
  RandomStream stream_;
};

// y_i = x_j where d_j = i: inputs are d and x.
StaticProgram scatter(int n, const WordType& type, bool permutation) {
  ProgramBuilder program("scatter", n);
  const Variable d = program.input("d", WordType::integer(permutation ? 0 : -1, n - 1));
  const Variable x = program.input("x", type);
  return program.finish(program.send("y", x, d, permutation));
}

Values network_outputs(const StaticProgram& program, Routing routing, const Values& input) {
  const RoutedProgram routed = route_messages(program, routing);
  const std::vector<float> inputs(input.begin(), input.end());
  const std::vector<float> outputs =
      predict_rows(compile(routed.program), routed_inputs<float>(program, routed, inputs, 1), 1);
  return {outputs.begin(), outputs.end()};
}

// The program with messages, the one without, and the network: all the same.
void expect_same_at_three_levels(const StaticProgram& program, const Values& input) {
  const Values expected = run_static<double>(program, input, 1);
  for (const Routing routing : all_routings) {
    SCOPED_TRACE(std::string(to_string(routing)));
    const RoutedProgram routed = route_messages(program, routing);
    EXPECT_TRUE(!routed.program.sends() || routing == Routing::attention);
    const Values inputs = routed_inputs<double>(program, routed, input, 1);
    EXPECT_EQ(run_static<double>(routed.program, inputs, 1), expected);
    EXPECT_EQ(network_outputs(program, routing, input), expected);
  }
}

TEST(RouteMessages, PermutationsOfWholeNumbersAndReals) {
  Random random(0);
  for (const int n : {1, 2, 3, 5, 8, 13, 16, 33}) {
    for (const WordType& type : {WordType::integer(-3, 9), WordType::real()}) {
      SCOPED_TRACE(std::to_string(n) + " " + to_string(type));
      const std::vector<int> to = random.permutation(n);
      Values input;
      for (int i = 0; i < n; ++i) {
        input.push_back(to[i]);
        input.push_back(type.is_real() ? 1e6 / (1 << random.below(20)) : random.below(13) - 3);
      }
      expect_same_at_three_levels(scatter(n, type, true), input);
    }
  }
}

TEST(RouteMessages, SomeSendNothing) {
  Random random(1);
  for (const int n : {1, 2, 3, 7, 8, 12, 20}) {
    for (const WordType& type : {WordType::integer(-3, 9), WordType::real()}) {
      for (int trial = 0; trial < 4; ++trial) {
        SCOPED_TRACE(std::to_string(n) + " " + to_string(type));
        const std::vector<int> to = random.permutation(n);
        Values input;
        for (int i = 0; i < n; ++i) {
          input.push_back(random.below(4) < trial ? -1 : to[i]);
          input.push_back(type.is_real() ? 1e6 / (1 << random.below(20)) : random.below(13) - 3);
        }
        expect_same_at_three_levels(scatter(n, type, false), input);
      }
    }
  }
}

// Rounds of random local functions, messages and plain receives; destinations move by data.
StaticProgram random_program(int n, Random& random) {
  ProgramBuilder program("random", n);
  const Variable d = program.input("d", WordType::integer(0, n - 1));
  const Variable x = program.input("x", WordType::integer(0, 20));
  const Variable to = program.word("to", WordType::integer(-n, 2 * n));
  program.set(to, program[d]);
  for (int round = 0; round < 3; ++round) {
    switch (random.below(4)) {
      case 0: {  // the other way round: still a permutation
        program.set(to, subtract(constant_value(n - 1), program[d]));
        const Variable y = program.send("y", x, to, true);
        program.set(x, minimum(add(program[x], program[y]), constant_value(20)));
        break;
      }
      case 1: {  // the upper ones send nothing
        program.set(to, add(program[d], constant_value(random.below(n))));
        const Variable y = program.send("y", x, to);
        const Variable z = program.send("z", d, to);
        program.set(x, maximum(program[x], program[y]));
        program.set(x, minimum(constant_value(20), add(program[x], program[z])));
        break;
      }
      case 2: {  // two ways at once
        program.set(to, subtract(program[d], constant_value(1)));
        const Variable y = program.send("y", x, to);
        const Variable z = program.send("z", x, d, true);
        program.set(x, minimum(constant_value(20), add(program[y], program[z])));
        break;
      }
      default: {
        const Variable y = program.receive("y", x, [](int i) { return i - 1; });
        program.set(x, minimum(constant_value(20), add(program[x], program[y])));
      }
    }
  }
  return program.finish({x, d});
}

TEST(RouteMessages, RandomProgramsAreTheSameAtThreeLevels) {
  Random random(2);
  for (int trial = 0; trial < 30; ++trial) {
    const int n = 2 + random.below(9);
    SCOPED_TRACE(std::to_string(trial) + ", n = " + std::to_string(n));
    const StaticProgram program = random_program(n, random);
    if (!program.sends()) continue;
    const std::vector<int> d = random.permutation(n);
    Values input;
    for (int i = 0; i < n; ++i) {
      input.push_back(d[i]);
      input.push_back(random.below(21));
    }
    expect_same_at_three_levels(program, input);
  }
}

TEST(RouteMessages, KnownDestinationsBecomePlainReceives) {
  const int n = 6;
  ProgramBuilder program("reverse", n);
  const Variable x = program.input("x");
  Values mirrored(n);
  for (int i = 0; i < n; ++i) mirrored[i] = n - 1 - i;
  const Variable to = program.word("to", WordType::integer(0, n), mirrored);
  program.set(to,
              minimum(constant_value(n), add(program[to], constant_value(1))));  // by nothing else
  const StaticProgram reverse = program.finish(program.send("y", x, to));
  const RoutedProgram routed = route_messages(reverse, Routing::automatic);
  ASSERT_EQ(routed.ways.size(), 1u);
  EXPECT_EQ(routed.ways[0].by, Routing::by_position);
  EXPECT_EQ(run_static<double>(routed.program, Values{1, 2, 3, 4, 5, 6}, 1),
            (Values{0, 6, 5, 4, 3, 2}));
}

// Two messages of one name in one round are two.
TEST(RouteMessages, MessagesOfOneNameStayApart) {
  const int n = 4;
  const auto places = [&](int distance) {
    Values to(n);
    for (int i = 0; i < n; ++i) to[i] = (i + distance) % n;
    return to;
  };
  ProgramBuilder builder("names", n);
  const Variable x = builder.input("x"), z = builder.input("z");
  const Variable a = builder.word("a", WordType::integer(0, n - 1), places(1));
  const Variable b = builder.word("b", WordType::integer(0, n - 1), places(2));
  const Variable w = builder.word("w", {}), v = builder.word("v", {});
  builder.set(w, builder[builder.send("y", x, a)]);
  builder.set(v, builder[builder.send("y", z, a)]);
  const Variable y = builder.send("y", z, b);
  const StaticProgram program = builder.finish({w, v, y});
  ASSERT_EQ(program.rounds.size(), 1u);
  const Values input = {1, 10, 2, 20, 3, 30, 4, 40};
  const Values expected = {4, 40, 30, 1, 10, 40, 2, 20, 10, 3, 30, 20};
  EXPECT_EQ(run_static<double>(program, input, 1), expected);
  const RoutedProgram routed = route_messages(program, Routing::automatic);
  EXPECT_EQ(run_static<double>(routed.program, input, 1), expected);
  EXPECT_EQ(network_outputs(program, Routing::automatic, input), expected);
}

TEST(RouteMessages, BenesTakesALayerAStage) {
  const StaticProgram program = scatter(100, WordType::real(), true);
  const RoutedProgram routed = route_messages(program, Routing::benes);
  const NetworkPlan plan = plan_network(routed.program);
  EXPECT_EQ(plan.layers.size(), 14u);  // 2 ceil(log2 100): 13 stages, and one to set the first
  EXPECT_EQ(plan.heads, 1);
}

TEST(RouteMessages, SortTakesALayerAStage) {
  const StaticProgram whole = scatter(100, WordType::integer(0, 99), true);
  EXPECT_EQ(plan_network(route_messages(whole, Routing::sort).program).layers.size(), 30u);
}

TEST(RouteMessages, TooManyMessagesAreRefusedByMachineRoundAndCount) {
  const StaticProgram program = scatter(4, WordType::real(), false);
  try {
    run_static<double>(program, Values{2, 1, 2, 1, 2, 1, 0, 1}, 1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::data);
    EXPECT_THAT(error.problem(),
                HasSubstr("machine 2 receives 3 messages for 'y' in round 0 of program 'scatter'"));
    EXPECT_THAT(error.expected(), HasSubstr("at most 1"));
  }
}

TEST(RouteMessages, APermutationThatIsNoneIsRefused) {
  ProgramBuilder builder("claims", 3);
  const Variable d = builder.input("d", WordType::integer(-1, 2));
  const StaticProgram program = builder.finish(builder.send("y", d, d, true));
  try {
    run_static<double>(program, Values{1, -1, 0}, 1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.problem(), HasSubstr("machine 2 receives 0 messages"));
    EXPECT_THAT(error.expected(), HasSubstr("a permutation"));
  }
}

TEST(RouteMessages, RefusesRoutingsThatCannotCarry) {
  const auto message = [](int n, Routing routing) {
    try {
      route_messages(scatter(n, WordType::real(), true), routing);
    } catch (const Error& error) {
      return error.problem() + " " + error.expected();
    }
    return std::string("nothing");
  };
  EXPECT_THAT(message(4, Routing::by_position), HasSubstr("which depends on the input"));
  EXPECT_THAT(message(65, Routing::gather), HasSubstr("at most 64"));
}

TEST(Routing, NamesAreReadBack) {
  for (const char* name : {"auto", "static", "gather", "sort", "benes"}) {
    EXPECT_EQ(to_string(parse_routing(name)), name);
  }
  EXPECT_THROW(parse_routing("bens"), Error);
}

}  // namespace
}  // namespace posattn
