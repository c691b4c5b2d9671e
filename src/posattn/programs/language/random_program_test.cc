// Random well-typed programs: the text is elaborated and run, and each statement is done by a
// closure as well. Words of integers and bits must agree in every bit, and so must the plan.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "posattn/base/error.h"
#include "posattn/base/random.h"
#include "posattn/programs/language/language.h"
#include "posattn/programs/lowering/run_plan_test.h"

namespace posattn {
namespace {

using Values = std::vector<double>;

struct Machine {
  int n = 0;
  std::map<std::string, Values> words;
};

// A term of the language and its value on processor i, in a loop with variable d.
struct RandomTerm {
  std::string text;
  std::function<double(const Machine&, int i, int d)> value;
};

struct RandomStatement {
  std::string text;  // lines, not indented
  std::function<void(Machine&, int d)> run;
};

class Generator {
 public:
  Generator(uint32_t index, int n) : random_(5, Purpose::test_data, 0, index), n_(n) {}

  uint32_t below(uint32_t bound) { return random_.below(bound); }

  RandomTerm number(double value) {
    return {value < 0 ? fmt::format("({})", value) : fmt::format("{}", value),
            [value](const Machine&, int, int) { return value; }};
  }
  RandomTerm word(const std::string& name) {
    return {name, [name](const Machine& m, int i, int) { return m.words.at(name)[i]; }};
  }

  template <class F>
  static RandomTerm joined(const std::string& form, const RandomTerm& a, const RandomTerm& b, F f) {
    return {fmt::format(fmt::runtime(form), a.text, b.text),
            [=](const Machine& m, int i, int d) { return f(a.value(m, i, d), b.value(m, i, d)); }};
  }

  // What indices and the loop's variable say.
  RandomTerm place() {
    switch (below(6)) {
      case 0:
        return {"i - d", [](const Machine&, int i, int d) { return i - d; }};
      case 1:
        return {"i + d", [](const Machine&, int i, int d) { return i + d; }};
      case 2:
        return {"i xor d", [](const Machine&, int i, int d) { return i ^ d; }};
      case 3:
        return {"(i * 3 - d) % n",
                [](const Machine& m, int i, int d) { return ((i * 3 - d) % m.n + m.n) % m.n; }};
      case 4:
        return {"(n - 1 - i if i > d else nothing)",
                [](const Machine& m, int i, int d) { return i > d ? m.n - 1 - i : -1; }};
      default:
        return {"i / 2", [](const Machine&, int i, int) { return i / 2; }};
    }
  }
  RandomTerm position_condition() {
    switch (below(4)) {
      case 0:
        return {"i < d", [](const Machine&, int i, int d) { return i < d; }};
      case 1:
        return {"i % 2 == 0", [](const Machine&, int i, int) { return i % 2 == 0; }};
      case 2:
        return {"i xor d > i", [](const Machine&, int i, int d) { return (i ^ d) > i; }};
      default:
        return {"2 * i >= n or i == 1",
                [](const Machine& m, int i, int) { return 2 * i >= m.n || i == 1; }};
    }
  }

  RandomTerm conditional(const RandomTerm& c, const RandomTerm& a, const RandomTerm& b,
                         const char* form = "({1} if {0} else {2})") {
    return {fmt::format(fmt::runtime(form), c.text, a.text, b.text),
            [=](const Machine& m, int i, int d) {
              return c.value(m, i, d) != 0 ? a.value(m, i, d) : b.value(m, i, d);
            }};
  }

  RandomTerm bit(int depth) {
    switch (depth <= 0 ? below(2) : below(10)) {
      case 8:
        return joined("({} xor {})", bit(depth - 1), bit(depth - 1),
                      [](double a, double b) { return a != b; });
      case 9:
        return joined("({} % 2 == {})", integer(depth - 1), number(below(2)),
                      [](double a, double b) { return a - 2 * std::floor(a / 2) == b; });
      case 0:
        return word("b");
      case 1:
        return word("bp");
      case 2:
        return joined("({} >= {})", integer(depth - 1), integer(depth - 1),
                      [](double a, double b) { return a >= b; });
      case 3:
        return joined("({} < {})", integer(depth - 1), integer(depth - 1),
                      [](double a, double b) { return a < b; });
      case 4:
        return joined("({} == {})", integer(depth - 1), integer(depth - 1),
                      [](double a, double b) { return a == b; });
      case 5:
        return joined("({} and {})", bit(depth - 1), bit(depth - 1),
                      [](double a, double b) { return a != 0 && b != 0; });
      case 6:
        return joined("({} or {})", bit(depth - 1), bit(depth - 1),
                      [](double a, double b) { return a != 0 || b != 0; });
      default:
        return joined("(not {0})", bit(depth - 1), number(0),
                      [](double a, double) { return a == 0; });
    }
  }

  // An integer or real term, of the words named and constants.
  RandomTerm arithmetic(int depth, bool whole) {
    const auto part = [&] { return arithmetic(depth - 1, whole); };
    if (depth <= 0) {
      switch (below(5)) {
        case 0:
          return number(static_cast<int>(below(7)) - 3 + (whole ? 0 : 0.5));
        case 1:
          return whole ? RandomTerm{"(i % 3)", [](const Machine&, int i, int) { return i % 3; }}
                       : word("q");
        case 2:
          return word(whole ? "kp" : "rp");
        default:
          return word(whole ? (below(2) ? "k" : "x") : (below(2) ? "r" : "q"));
      }
    }
    if (whole && below(4) == 0) return divided(depth);
    switch (below(11)) {
      case 10:  // of a condition without words no factor is made
        return conditional(joined("({} or {})", bit(depth - 1), word("b"),
                                  [](double a, double b) { return a != 0 || b != 0; }),
                           part(), number(0), below(2) ? "({0} * {1})" : "({1} * {0})");
      case 0:
        return joined("({} + {})", part(), part(), [](double a, double b) { return a + b; });
      case 1:
        return joined("({} - {})", part(), part(), [](double a, double b) { return a - b; });
      case 2:
        return joined("min({}, {})", part(), part(),
                      [](double a, double b) { return std::min(a, b); });
      case 3:
        return joined("max({}, {})", part(), part(),
                      [](double a, double b) { return std::max(a, b); });
      case 4:
        return joined("abs({0})", part(), number(0), [](double a, double) { return std::abs(a); });
      case 5:
        return joined("relu({0})", part(), number(0),
                      [](double a, double) { return std::max(0.0, a); });
      case 6:
        return joined(whole ? "(-2 * {0})" : "({0} / 4)", part(), number(0),
                      [whole](double a, double) { return whole ? -2 * a : a / 4; });
      case 7:
        return conditional(position_condition(), part(), part());
      case 8:
        return conditional(bit(depth - 1), part(), part());
      default:
        return conditional(bit(depth - 1), part(), part(), "choose({0}, {1}, {2})");
    }
  }
  RandomTerm integer(int depth) { return arithmetic(depth, true); }

  // Quotients, rests and digits of whole numbers.
  RandomTerm divided(int depth) {
    const double by = 2 + below(4);
    switch (below(3)) {
      case 0:
        return joined("({} / {})", integer(depth - 1), number(by),
                      [](double a, double b) { return std::floor(a / b); });
      case 1:
        return joined("({} % {})", integer(depth - 1), number(by),
                      [](double a, double b) { return a - b * std::floor(a / b); });
      default:
        return joined("(max(0, {0}) xor {1})", integer(depth - 1), number(below(8)),
                      [](double a, double b) {
                        return static_cast<int>(std::max(0.0, a)) ^ static_cast<int>(b);
                      });
    }
  }

  RandomStatement assignment() {
    static constexpr int depth = 2;
    const uint32_t kind = below(5);
    const std::string target = kind < 2 ? "k" : kind < 4 ? (kind == 2 ? "r" : "q") : "b";
    RandomTerm value = kind < 2 ? integer(depth) : kind < 4 ? arithmetic(depth, false) : bit(depth);
    if (target == "k") {
      value = joined("max(-9, min(9, {0}))", value, number(0),
                     [](double a, double) { return std::clamp(a, -9.0, 9.0); });
    }
    // An integer without a range takes all of them, once in a while what it was and more.
    if (target == "k" && below(3) == 0) {
      return {"c += " + value.text + "\n", [=](Machine& m, int d) {
                for (int i = 0; i < m.n; ++i) m.words["c"][i] += value.value(m, i, d);
              }};
    }
    return {target + " = " + value.text + "\n", [=](Machine& m, int d) {
              Values next(m.n);
              for (int i = 0; i < m.n; ++i) next[i] = value.value(m, i, d);
              m.words[target] = next;
            }};
  }

  RandomStatement receive() {
    static const std::vector<std::pair<std::string, std::string>> pairs = {
        {"rp", "r"}, {"rp", "q"}, {"kp", "k"}, {"kp", "x"}, {"bp", "b"}};
    const auto& pair = pairs[below(5)];
    const std::string target = pair.first, source = pair.second;
    if (source == "r" && below(3) == 0) {
      return {"receive rp = sum of (0.25 * (i - j) / n) * r over j where j <= i + 1\n",
              [](Machine& m, int) {
                Values sums(m.n);
                for (int i = 0; i < m.n; ++i) {
                  for (int j = 0; j <= i + 1 && j < m.n; ++j) {
                    sums[i] += 0.25 * (i - j) / m.n * m.words["r"][j];
                  }
                }
                m.words["rp"] = sums;
              }};
    }
    if (source == "k" && below(2) == 0) return over_processors();
    const RandomTerm first = place(), second = place();
    const bool two = below(2) == 0;
    return {fmt::format("receive {} = {} from {}{}\n", target, source, first.text,
                        two ? " else " + second.text : ""),
            [=](Machine& m, int d) {
              Values received(m.n);
              for (int i = 0; i < m.n; ++i) {
                auto from = static_cast<int>(first.value(m, i, d));
                if (two && (from < 0 || from >= m.n)) {
                  from = static_cast<int>(second.value(m, i, d));
                }
                received[i] = from < 0 || from >= m.n ? 0 : m.words[source][from];
              }
              m.words[target] = received;
            }};
  }

  // kp = sum, min or max of k over some processors.
  RandomStatement over_processors() {
    const uint32_t kind = below(3);
    static const std::vector<std::string> forms = {"sum of (1 - 2 * (j % 2)) * k", "min of k",
                                                   "max of k"};
    return {"receive kp = " + forms[kind] + " over j where (i + j) % 3 != 1\n",
            [=](Machine& m, int) {
              Values received(m.n);
              for (int i = 0; i < m.n; ++i) {
                bool any = false;
                for (int j = 0; j < m.n; ++j) {
                  const double k = m.words["k"][j];
                  if ((i + j) % 3 == 1) continue;
                  if (kind == 0) received[i] += j % 2 == 0 ? k : -k;
                  if (kind == 1) received[i] = any ? std::min(received[i], k) : k;
                  if (kind == 2) received[i] = any ? std::max(received[i], k) : k;
                  any = true;
                }
              }
              m.words["kp"] = received;
            }};
  }

  RandomStatement branch() {
    const RandomTerm condition = below(2) ? position_condition() : word("b");
    std::vector<RandomStatement> then = {assignment(), assignment()}, otherwise = {assignment()};
    std::string text = "if " + condition.text + ":\n";
    for (const auto& statement : then) text += "  " + statement.text;
    text += "else:\n  " + otherwise[0].text;
    return {text, [=](Machine& m, int d) {
              Machine a = m, b = m;
              for (const auto& statement : then) statement.run(a, d);
              for (const auto& statement : otherwise) statement.run(b, d);
              const Machine before = m;
              for (auto& [name, values] : m.words) {
                for (int i = 0; i < m.n; ++i) {
                  const Machine& from = condition.value(before, i, d) != 0 ? a : b;
                  values[i] = from.words.at(name)[i];
                }
              }
            }};
  }

  RandomStatement statement() {
    const uint32_t kind = below(6);
    return kind < 3 ? assignment() : kind < 5 ? receive() : branch();
  }

  Values input() {
    Values values;
    for (int i = 0; i < n_; ++i) values.push_back(static_cast<int>(below(11)) - 5);
    return values;
  }

 private:
  RandomStream random_;
  int n_;
};

std::string indented(const std::string& text) {
  std::string result = "  ";
  for (size_t k = 0; k < text.size(); ++k) {
    result += text[k];
    if (text[k] == '\n' && k + 1 < text.size()) result += "  ";
  }
  return result;
}

TEST(RandomPrograms, TextInterpreterAndPlanAgree) {
  for (uint32_t index = 0; index < 150; ++index) {
    RandomStream sizes(6, Purpose::test_data, 0, index);
    const int n = 1 + static_cast<int>(sizes.below(9));
    Generator generator(index, n);
    std::string text =
        "word x : int[-5..5] = input\n"
        "word k : int[-9..9] = i % 4\n"
        "word c : int\n"
        "word r : real = x\n"
        "word q : real = 0.5 * i\n"
        "word b : bit = (i % 3 == 0)\n"
        "let d = 1\n"
        "receive rp = r from i - 1\n"
        "receive kp = k from i + 1\n"
        "receive bp = b from i - 1\n";
    std::vector<RandomStatement> once, repeated;
    for (int s = 0; s < 4; ++s) text += once.emplace_back(generator.statement()).text;
    text += "for e in 1, 2, 4, ... below n:\n  let d = e\n";
    for (int s = 0; s < 3; ++s) text += indented(repeated.emplace_back(generator.statement()).text);
    const bool outputs_integer = generator.below(2) == 0;
    text += outputs_integer ? "output k + c\n" : "output r + q + k + b\n";
    SCOPED_TRACE(fmt::format("program {}, n = {}\n{}", index, n, text));

    StaticProgram program;
    try {
      program = compile_text(text, "random.par", n);
    } catch (const Error& error) {
      FAIL() << error.what();
    }
    const NetworkPlan plan = plan_network(program);
    for (int sample = 0; sample < 4; ++sample) {
      Machine machine;
      machine.n = n;
      const Values x = generator.input();
      machine.words = {{"x", x}, {"k", x},  {"c", Values(n)}, {"r", x}, {"q", x},
                       {"b", x}, {"rp", x}, {"kp", x},        {"bp", x}};
      for (int i = 0; i < n; ++i) {
        machine.words["k"][i] = i % 4;
        machine.words["q"][i] = 0.5 * i;
        machine.words["b"][i] = i % 3 == 0;
      }
      for (int i = 0; i < n; ++i) {
        machine.words["rp"][i] = i > 0 ? x[i - 1] : 0;
        machine.words["kp"][i] = i + 1 < n ? (i + 1) % 4 : 0;
        machine.words["bp"][i] = i > 0 && (i - 1) % 3 == 0;
      }
      for (const auto& statement : once) statement.run(machine, 1);
      for (int e = 1; e < n; e *= 2) {
        for (const auto& statement : repeated) statement.run(machine, e);
      }
      const Values found = run_static<double>(program, x, 1);
      const Values planned = run_plan(plan, x);
      for (int i = 0; i < n; ++i) {
        auto& words = machine.words;
        const double expected = outputs_integer
                                    ? words["k"][i] + words["c"][i]
                                    : words["r"][i] + words["q"][i] + words["k"][i] + words["b"][i];
        const double tolerance = outputs_integer ? 0 : 1e-9 * (1 + std::abs(expected));
        ASSERT_NEAR(found[i], expected, tolerance) << "processor " << i;
        ASSERT_NEAR(planned[i], expected, tolerance) << "planned, processor " << i;
      }
    }
  }
}

}  // namespace
}  // namespace posattn
