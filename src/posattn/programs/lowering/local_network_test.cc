#include "posattn/programs/lowering/local_network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "posattn/programs/form/builder.h"

namespace posattn {
namespace {

using Values = std::vector<double>;

double dot(const LinearForm& form, const Values& values) {
  double sum = 0;
  for (const auto& [index, factor] : form) sum += factor * values[index];
  return sum;
}

// One round on one processor, as its layers say: the value of `word` for these words and receipts.
double run_layers(const LocalNetwork& network, int word, Values values) {
  for (const LocalLayer& layer : network.layers) {
    Values units, outputs;
    for (const LinearForm& unit : layer.units) units.push_back(std::max(0.0, dot(unit, values)));
    for (const LinearForm& output : layer.outputs) outputs.push_back(dot(output, units));
    values = outputs;
  }
  const auto found = std::ranges::find(network.words, word);
  EXPECT_NE(found, network.words.end());
  return values[found - network.words.begin()];
}

struct Lowered {
  StaticProgram program;
  LocalNetwork network;
  int one = -1;
};

// A round in which x becomes f(x, y), y being what was received.
using LocalFunction = std::function<Value(const Value& x, const Value& y)>;
Lowered lower(const LocalFunction& function, const WordType& type, bool with_one) {
  ProgramBuilder program("local", 1);
  const Variable x = program.input("x", type);
  const Variable out = program.word("out", type.is_real() ? type : WordType::integer(-400, 400));
  const Variable y = program.receive("y", x, [](int) { return 0; });
  program.set(out, function(program[x], program[y]));
  Lowered lowered;
  lowered.program = program.finish(out);
  if (with_one) {
    lowered.one = static_cast<int>(lowered.program.words.size());
    lowered.program.words.push_back({"one", WordType::integer(1, 1), {1.0}});
  }
  std::vector<bool> live(lowered.program.words.size());
  live[lowered.program.outputs[0]] = true;
  lowered.network = lower_local(lowered.program, lowered.program.rounds.at(0), live, lowered.one);
  return lowered;
}

double run(const Lowered& lowered, double x, double y) {
  Values values(lowered.program.words.size());
  values[lowered.program.inputs[0]] = x;
  if (lowered.one >= 0) values[lowered.one] = 1;
  values.push_back(y);
  return run_layers(lowered.network, lowered.program.outputs[0], values);
}

struct Example {
  const char* name;
  LocalFunction function;
  std::function<double(double, double)> exact;
  size_t layers, units;  // units of the first layer; 0: any
};

TEST(LocalNetwork, RealsByTheFormulas) {
  const std::vector<Example> examples = {
      {"sum", [](auto& x, auto& y) { return add(x, y); }, [](double x, double y) { return x + y; },
       1, 2},
      {"minimum", [](auto& x, auto& y) { return minimum(x, y); },
       [](double x, double y) { return std::min(x, y); }, 1, 3},
      {"maximum", [](auto& x, auto& y) { return maximum(x, y); },
       [](double x, double y) { return std::max(x, y); }, 1, 3},
      {"absolute", [](auto& x, auto&) { return absolute(x); },
       [](double x, double) { return std::abs(x); }, 1, 2},
      {"distance", [](auto& x, auto& y) { return absolute(subtract(x, scale(3, y))); },
       [](double x, double y) { return std::abs(x - 3 * y); }, 1, 2},
      {"nested",
       [](auto& x, auto& y) { return maximum(minimum(x, y), scale(-1, minimum(x, scale(2, y)))); },
       [](double x, double y) { return std::max(std::min(x, y), -std::min(x, 2 * y)); }, 2, 0},
      {"three deep",
       [](auto& x, auto& y) { return relu(subtract(x, absolute(subtract(y, relu(x))))); },
       [](double x, double y) { return std::max(0.0, x - std::abs(y - std::max(0.0, x))); }, 3, 0},
  };
  for (const Example& example : examples) {
    SCOPED_TRACE(example.name);
    const Lowered lowered = lower(example.function, {}, false);
    if (example.layers > 0) {
      EXPECT_EQ(lowered.network.layers.size(), example.layers);
    }
    if (example.units > 0) {
      EXPECT_EQ(lowered.network.layers[0].units.size(), example.units);
    }
    for (double x = -3; x <= 3; x += 0.5) {
      for (double y = -3; y <= 3; y += 0.5) EXPECT_EQ(run(lowered, x, y), example.exact(x, y));
    }
  }
}

TEST(LocalNetwork, WholeNumbersCompareAndSelect) {
  const auto bit = [](bool b) { return b ? 1.0 : 0.0; };
  const std::vector<Example> examples = {
      {"at least", [](auto& x, auto& y) { return at_least(x, y); },
       [&](double x, double y) { return bit(x >= y); }, 1, 2},
      {"equal", [](auto& x, auto& y) { return equal(x, y); },
       [&](double x, double y) { return bit(x == y); }, 1, 5},
      {"select",
       [](auto& x, auto& y) {
         return select(at_least(x, y), scale(-3, x), add(y, constant_value(100)));
       },
       [](double x, double y) { return x >= y ? -3 * x : y + 100; }, 2, 0},
      {"select in select",
       [](auto& x, auto& y) {
         const Value inner = select(at_least(y, constant_value(2)), x, scale(5, y));
         return select(negation(at_least(inner, x)), inner, constant_value(-7));
       },
       [](double x, double y) {
         const double inner = y >= 2 ? x : 5 * y;
         return inner >= x ? -7 : inner;
       },
       0, 0},
  };
  for (const Example& example : examples) {
    SCOPED_TRACE(example.name);
    const Lowered lowered = lower(example.function, WordType::integer(-9, 9), true);
    if (example.layers > 0) {
      EXPECT_EQ(lowered.network.layers.size(), example.layers);
    }
    if (example.units > 0) {
      EXPECT_EQ(lowered.network.layers[0].units.size(), example.units);
    }
    for (int x = -9; x <= 9; ++x) {
      for (int y = -9; y <= 9; ++y) EXPECT_EQ(run(lowered, x, y), example.exact(x, y));
    }
  }
}

// A comparator by position: q is the processor's own value or its partner's.
TEST(LocalNetwork, ExchangeTakesFourUnits) {
  ProgramBuilder program("exchange", 2);
  const Variable x = program.input("x");
  const Variable p = program.receive("p", x, [](int i) { return 1 - i; });
  program.set(x, {true, false}, minimum(program[x], program[p]), maximum(program[x], program[p]));
  const StaticProgram finished = program.finish(x);
  const Round& round = finished.rounds.at(0);
  ASSERT_EQ(round.receives.size(), 2U);
  const LocalNetwork network = lower_local(finished, round, {true}, -1);
  ASSERT_EQ(network.layers.size(), 1U);
  EXPECT_EQ(network.layers[0].units.size(), 4U);
  const auto received = [&](int processor, const Values& words) {
    Values values = {words[processor]};
    for (const Receive& receive : round.receives) {
      values.push_back(words[receive.route.sources[processor]]);
    }
    return values;
  };
  for (const Values& words : {Values{1, 2}, {2, 1}, {-1, -1}, {-5, 3}}) {
    EXPECT_EQ(run_layers(network, 0, received(0, words)), std::min(words[0], words[1]));
    EXPECT_EQ(run_layers(network, 0, received(1, words)), std::max(words[0], words[1]));
  }
}

}  // namespace
}  // namespace posattn
