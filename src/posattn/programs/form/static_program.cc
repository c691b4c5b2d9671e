#include "posattn/programs/form/static_program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "posattn/base/watch.h"
#include "posattn/programs/form/local_step.h"

namespace posattn {
namespace {

// The state [processors, words] of one sample, stepped round by round.
template <class T>
class Machine {
 public:
  explicit Machine(const StaticProgram& program)
      : program_(program),
        words_(program.words.size()),
        state_(program.processors * words_),
        next_(state_.size()) {}

  // input: [processors, inputs]
  void start(const T* input) {
    round_ = 0;
    for (int i = 0; i < program_.processors; ++i) {
      for (size_t w = 0; w < words_; ++w) {
        const auto& initial = program_.words[w].initial;
        state_[i * words_ + w] = initial.empty() ? T{0} : static_cast<T>(initial[i]);
      }
      for (const int w : program_.inputs) state_[i * words_ + w] = *input++;
    }
  }

  void step(const Round& round) {
    next_ = state_;
    received_.resize(round.receives.size());
    senders_.clear();
    for (const Receive& receive : round.receives) {
      if (receive.route.is_sent()) find_senders(receive);
    }
    for (int i = 0; i < program_.processors; ++i) {
      for (size_t r = 0; r < round.receives.size(); ++r)
        received_[r] = received(round.receives[r], i);
      local_.run(round, &state_[i * words_], received_.data(), &next_[i * words_]);
      local_.check(program_, round_, i);
    }
    std::swap(state_, next_);
    ++round_;
  }

  const std::vector<T>& state() const { return state_; }

 private:
  T received(const Receive& receive, int i) const {
    const auto word_of = [&](int32_t j) { return state_[j * words_ + receive.word]; };
    if (receive.route.is_sent()) {
      const int32_t j = senders_.at(receive.route.destination)[i];
      return j == program_.processors ? T{0} : word_of(j);
    }
    if (!receive.route.is_weighted()) {
      const int32_t j = receive.route.sources[i];
      return j == program_.processors ? T{0} : word_of(j);
    }
    T sum = 0;
    for (const auto& [j, weight] : receive.route.weighted[i]) {
      sum += static_cast<T>(weight) * word_of(j);
    }
    return sum;
  }

  // The sender to each processor, or the scratch processor if there is none.
  void find_senders(const Receive& receive) {
    const int n = program_.processors;
    const auto [place, added] = senders_.try_emplace(receive.route.destination);
    if (added) {
      std::vector<int> count(n);
      place->second.assign(n, n);
      for (int32_t j = 0; j < n; ++j) {
        const T to = state_[j * words_ + receive.route.destination];
        if (!(to >= 0 && to < static_cast<T>(n))) continue;
        ++count[static_cast<int>(to)];
        place->second[static_cast<int>(to)] = j;
      }
      for (int i = 0; i < n; ++i) {
        if (count[i] > 1) throw wrong_messages(program_, round_, receive, i, count[i]);
      }
    }
    if (!receive.route.permutation) return;
    const auto nobody = std::ranges::find(place->second, n);
    if (nobody != place->second.end()) {
      throw wrong_messages(program_, round_, receive,
                           static_cast<int>(nobody - place->second.begin()), 0);
    }
  }
  const StaticProgram& program_;
  size_t words_;
  int round_ = 0;
  std::vector<T> state_, next_, received_;
  LocalStep<T> local_;
  std::map<int, std::vector<int32_t>> senders_;  // of the round, by the word of destinations
};

void expect(bool holds, const char* what) {
  if (!holds) throw std::logic_error(std::string("static program: ") + what);
}

void check(const StaticProgram& program, const Round& round) {
  const auto words = static_cast<int>(program.words.size());
  const auto is_place = [&](int32_t j, bool scratch) {
    return j >= 0 && j < program.processors + (scratch ? 1 : 0);
  };
  for (const Receive& receive : round.receives) {
    expect(receive.word >= 0 && receive.word < words, "a receive of no word");
    const Route& route = receive.route;
    if (route.is_sent()) {
      Route::visit_words(
          route, [&](int word) { expect(word >= 0 && word < words, "a destination in no word"); });
      expect(!program.words[route.destination].type.is_real(), "a destination that is no integer");
    } else if (route.is_weighted()) {
      expect(static_cast<int>(route.weighted.size()) == program.processors, "a short route");
      for (const auto& row : route.weighted) {
        for (const auto& [j, weight] : row) {
          expect(is_place(j, false) && std::isfinite(weight), "a bad weighted read");
        }
      }
    } else {
      expect(static_cast<int>(route.sources.size()) == program.processors, "a short route");
      for (const int32_t j : route.sources) expect(is_place(j, true), "a route to nowhere");
    }
  }
  for (size_t k = 0; k < round.instructions.size(); ++k) {
    const Instruction& instruction = round.instructions[k];
    for (const int operand : instruction.operands) {
      expect(operand >= 0 && operand < static_cast<int>(k), "an operand that comes later");
    }
    if (instruction.kind == Expression::Kind::word) {
      expect(instruction.index >= 0 && instruction.index < words, "no such word");
    }
    if (instruction.kind == Expression::Kind::received) {
      expect(instruction.index >= 0 && instruction.index < static_cast<int>(round.receives.size()),
             "nothing received");
    }
  }
  for (const Update& update : round.updates) {
    expect(update.word >= 0 && update.word < words, "an update of no word");
    expect(
        update.instruction >= 0 && update.instruction < static_cast<int>(round.instructions.size()),
        "an update by nothing");
  }
}

}  // namespace

std::string place_of(const StaticProgram& program, int round) {
  const std::vector<int>& lines = program.rounds[round].lines;
  if (lines.empty()) return fmt::format("round {}", round);
  return fmt::format("round {} (line {})", round, fmt::join(lines, ", "));
}

Error wrong_messages(const StaticProgram& program, int round, const Receive& receive, int machine,
                     int count) {
  return Error(ExitCode::data,
               fmt::format("machine {} receives {} messages for '{}' in round {} of program '{}'",
                           machine, count, receive.name, round, program.name),
               count == 0 ? "exactly 1 for everybody: the destinations are said to be a permutation"
                          : "at most 1: a word holds one message");
}

bool StaticProgram::sends() const {
  return std::ranges::any_of(rounds, [](const Round& round) {
    return std::ranges::any_of(round.receives, [](const Receive& r) { return r.route.is_sent(); });
  });
}

bool StaticProgram::zero_stays_zero() const {
  for (const Word& word : words) {
    if (std::ranges::any_of(word.initial, [](double x) { return x != 0; })) return false;
  }
  const std::vector<double> zeros(words.size());
  std::vector<double> out(words.size());
  LocalStep<double> local;
  for (const Round& round : rounds) {
    const std::vector<double> nothing(round.receives.size());
    local.run(round, zeros.data(), nothing.data(), out.data());
    for (const Update& update : round.updates) {
      if (out[update.word] != 0) return false;
    }
  }
  return true;
}

void check(const StaticProgram& program) {
  expect(program.processors >= 1, "no processors");
  const auto words = static_cast<int>(program.words.size());
  expect(!program.inputs.empty() && !program.outputs.empty(), "no input or output");
  for (const std::vector<int>* list : {&program.inputs, &program.outputs}) {
    for (const int w : *list) expect(w >= 0 && w < words, "an input or output that is no word");
  }
  for (const Word& word : program.words) {
    expect(word.initial.empty() || static_cast<int>(word.initial.size()) == program.processors,
           "initial values for other processors");
  }
  for (const Round& round : program.rounds) check(program, round);
}

std::optional<InputFault> input_fault(const StaticProgram& program, std::span<const double> input) {
  const size_t columns = program.inputs.size();
  for (int i = 0; i < program.processors; ++i) {
    for (size_t c = 0; c < columns; ++c) {
      const Word& word = program.words[program.inputs[c]];
      const double x = input[i * columns + c];
      if (word.type.is_real() || (x == std::floor(x) && x >= static_cast<double>(word.type.low) &&
                                  x <= static_cast<double>(word.type.high))) {
        continue;
      }
      return InputFault{fmt::format("{} of '{}' on processor {}", x, word.name, i),
                        "numbers of the input's type, " + to_string(word.type)};
    }
  }
  for (const PromisedInputs& promised : program.promises) {
    std::vector<double> part;
    for (int i = 0; i < program.processors; ++i) {
      const auto from = input.begin() + static_cast<int64_t>(i * columns) + promised.first;
      part.insert(part.end(), from, from + promised.count);
    }
    const std::string problem = broken(promised.promise, part, program.processors);
    if (problem.empty()) continue;
    return InputFault{
        fmt::format("{} ('{}')", problem, program.words[program.inputs[promised.first]].name),
        fmt::format("an input that keeps what the program was promised: {}",
                    to_string(promised.promise))};
  }
  return std::nullopt;
}

template <class T>
std::vector<T> run_static(const StaticProgram& program, std::span<const T> inputs,
                          int64_t samples) {
  const int64_t n = program.processors;
  std::vector<T> outputs;
  outputs.reserve(samples * n * program.outputs.size());
  Machine<T> machine(program);
  for (int64_t s = 0; s < samples; ++s) {
    machine.start(inputs.data() + s * n * static_cast<int64_t>(program.inputs.size()));
    for (const Round& round : program.rounds) {
      Watch::look();
      machine.step(round);
    }
    for (int64_t i = 0; i < n; ++i) {
      for (const int w : program.outputs) {
        outputs.push_back(machine.state()[i * program.words.size() + w]);
      }
    }
  }
  return outputs;
}
template std::vector<float> run_static<float>(const StaticProgram&, std::span<const float>,
                                              int64_t);
template std::vector<double> run_static<double>(const StaticProgram&, std::span<const double>,
                                                int64_t);

std::vector<double> trace_static(const StaticProgram& program, std::span<const double> input) {
  Machine<double> machine(program);
  machine.start(input.data());
  std::vector<double> trace = machine.state();
  for (const Round& round : program.rounds) {
    machine.step(round);
    trace.insert(trace.end(), machine.state().begin(), machine.state().end());
  }
  return trace;
}

}  // namespace posattn
