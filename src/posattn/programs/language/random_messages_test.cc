// Random programs of copies, changes, receives and messages: the text is elaborated and run at
// every level, and each statement is done by a closure as well. All numbers are exact, so all must
// be equal.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <optional>

#include "posattn/base/error.h"
#include "posattn/base/random.h"
#include "posattn/programs/language/language.h"
#include "posattn/programs/lowering/compile.h"
#include "posattn/programs/messages/route_messages.h"

namespace posattn {
namespace {

using Values = std::vector<double>;
using Words = std::map<std::string, Values>;

constexpr const char* message_words = R"(word d : int[0..n - 1] = input permutation
word x : int[-30..30] = input
word v : real = input
word e : int[0..n - 1] = (i + 1) % n
word y : int[-30..30]
word u : real
)";
const std::vector<std::string> places_to = {"d", "e"}, whole_words = {"x", "y"},
                               real_words = {"v", "u"};

class MessageProgram {
 public:
  MessageProgram(uint32_t index, int n) : random_(8, Purpose::test_data, 0, index), n_(n) {}

  int below(int bound) { return static_cast<int>(random_.below(static_cast<uint32_t>(bound))); }

  void add_statement() {
    switch (below(8)) {
      case 0:
      case 1:
        return copy();
      case 2:
        return turn(any(places_to));
      case 3:
        return change_integer(any(whole_words), any(whole_words));
      case 4:
        return change_real(any(real_words), any(real_words));
      case 5:
        return receive(any(whole_words), any(whole_words));
      default:
        return send();
    }
  }

  const std::string& text() const { return text_; }
  void run(Words& words) const {
    for (const auto& statement : statements_) statement(words);
  }

  // [processors, inputs]: a permutation, whole numbers, eighths
  Values input() {
    std::vector<int> to(n_);
    std::iota(to.begin(), to.end(), 0);
    Values values;
    for (int i = n_; i-- > 0;) {
      std::swap(to[i], to[below(i + 1)]);
      values.insert(values.begin(),
                    {static_cast<double>(to[i]), below(61) - 30.0, (below(81) - 40) / 8.0});
    }
    return values;
  }

 private:
  const std::string& any(const std::vector<std::string>& list) {
    return list[below(static_cast<int>(list.size()))];
  }
  void add(std::string line, std::function<void(Words&)> run) {
    text_ += line + "\n";
    statements_.push_back(std::move(run));
  }
  // word = f(the word, another), processor by processor
  template <class F>
  void change(std::string line, const std::string& a, const std::string& b, F f) {
    add(std::move(line),
        [=](Words& words) { std::ranges::transform(words[a], words[b], words[a].begin(), f); });
  }

  void copy() {
    const int kind = below(3);
    const auto& list = kind == 0 ? places_to : kind == 1 ? whole_words : real_words;
    const std::string &a = any(list), &b = any(list);
    change(fmt::format("{} = {}", a, b), a, b, [](double, double from) { return from; });
  }
  void turn(const std::string& a) {
    const int k = below(n_ + 1), n = n_;
    change(fmt::format("{0} = ({0} + {1}) % n", a, k), a, a,
           [=](double to, double) { return (static_cast<int>(to) + k) % n; });
  }
  void change_integer(const std::string& a, const std::string& b) {
    change(fmt::format("{0} = max(-30, min(30, {0} + {1} - 3))", a, b), a, b,
           [](double p, double q) { return std::clamp(p + q - 3, -30.0, 30.0); });
  }
  void change_real(const std::string& a, const std::string& b) {
    change(fmt::format("{0} = max({0}, 0.5 * {1} + 1)", a, b), a, b,
           [](double p, double q) { return std::max(p, 0.5 * q + 1); });
  }
  void receive(const std::string& a, const std::string& b) {
    const int distance = below(5) - 2, n = n_;
    add(fmt::format("receive {} = {} from i + ({})", a, b, distance), [=](Words& words) {
      Values received(n);
      for (int i = 0; i < n; ++i) {
        const int from = i + distance;
        if (from >= 0 && from < n) received[i] = words[b][from];
      }
      words[a] = received;
    });
  }

  void send() {
    const bool real = below(2) == 0;
    const auto& list = real ? real_words : whole_words;
    const std::string &to = any(places_to), &source = any(list), &target = any(list);
    const int above = below(3) == 0 ? below(21) - 10 : -31;  // of x: all send
    const bool named = below(3) == 0;  // what arrives has a name of its own first
    const std::string arrives = named ? (real ? "heard" : "came") : target;
    const int n = n_;
    std::string line = fmt::format("send {} = {} to {}", arrives, source, to);
    if (above < -30 && below(2) == 0) line = "permute" + line.substr(4);
    if (above >= -30) line += fmt::format(" if x > {} else nothing", above);
    if (named) line += fmt::format("\n{} = {}", target, arrives);
    add(std::move(line), [=](Words& words) {
      Values arrived(n);
      for (int i = 0; i < n; ++i) {
        if (words["x"][i] > above) arrived[static_cast<int>(words[to][i])] = words[source][i];
      }
      words[target] = arrived;
    });
  }

  RandomStream random_;
  int n_;
  std::string text_;
  std::vector<std::function<void(Words&)>> statements_;
};

Words start_of(const Values& input, int n) {
  Words words = {{"y", Values(n)}, {"u", Values(n)}};
  for (int i = 0; i < n; ++i) {
    words["d"].push_back(input[3 * i]);
    words["x"].push_back(input[3 * i + 1]);
    words["v"].push_back(input[3 * i + 2]);
    words["e"].push_back((i + 1) % n);
  }
  return words;
}

// None where whole numbers might pass 2^24.
std::optional<Model> compiled_if_exact(const StaticProgram& routed) {
  try {
    return compile(routed);
  } catch (const Error&) {
    return std::nullopt;
  }
}

TEST(RandomMessages, EveryLevelAgrees) {
  int networks = 0;
  const std::vector<std::string> outputs = {"d", "x", "v", "e", "y", "u"};
  for (uint32_t index = 0; index < 600; ++index) {
    const int n = 1 + static_cast<int>(index % 6);
    MessageProgram messages(index, n);
    for (int s = messages.below(8) + 5; s > 0; --s) messages.add_statement();
    std::string text = message_words + messages.text();
    for (const std::string& word : outputs) text += "output " + word + "\n";
    SCOPED_TRACE(fmt::format("program {}, n = {}\n{}", index, n, text));
    const StaticProgram program = compile_text(text, "random.par", n);
    const Routing routings[] = {Routing::gather, Routing::sort, Routing::benes, Routing::attention};
    const RoutedProgram routed = route_messages(program, routings[index / 6 % 4]);
    const std::optional<Model> model = compiled_if_exact(routed.program);
    networks += model ? 1 : 0;
    for (int sample = 0; sample < 3; ++sample) {
      const Values input = messages.input();
      Words words = start_of(input, n);
      messages.run(words);
      Values expected;
      for (int i = 0; i < n; ++i) {
        for (const std::string& word : outputs) expected.push_back(words[word][i]);
      }
      ASSERT_EQ(run_static<double>(program, input, 1), expected);
      const Values inputs = routed_inputs<double>(program, routed, input, 1);
      ASSERT_EQ(run_static<double>(routed.program, inputs, 1), expected);
      if (model) {
        ASSERT_EQ(run_network(*model, routed.program, inputs, 1), expected);
      }
    }
  }
  EXPECT_GT(networks, 500);
}

}  // namespace
}  // namespace posattn
