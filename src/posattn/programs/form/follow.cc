#include <algorithm>
#include <cmath>

#include "posattn/programs/form/local_step.h"
#include "posattn/programs/form/static_program.h"

namespace posattn {
namespace {

using Kind = Operator::Kind;

// One round on one processor, with what every word held before it.
class Look {
 public:
  Look(const StaticProgram& program, const Round& round, std::span<const double> before,
       int processor)
      : program_(program), round_(round), before_(before), processor_(processor) {
    std::vector<double> received, after(program.words.size());
    for (const Receive& receive : round.receives) received.push_back(received_from(receive));
    local_.run(round, &before[processor * program.words.size()], received.data(), after.data());
  }

  std::optional<CarriedBy> origin(int word) const {
    const auto update = std::ranges::find(round_.updates, word, &Update::word);
    if (update == round_.updates.end()) return CarriedBy{processor_, word};
    int at = update->instruction;
    while (!round_.instructions[at].reads()) {
      const Instruction& instruction = round_.instructions[at];
      if (instruction.operands.empty()) return std::nullopt;  // a constant
      at = instruction.operands[decisive(instruction, local_.results()[at])];
    }
    const Instruction& read = round_.instructions[at];
    if (read.kind == Kind::word) return CarriedBy{processor_, read.index};
    const Receive& receive = round_.receives[read.index];
    const int from = sender(receive);
    if (from == program_.processors) return std::nullopt;
    return CarriedBy{from, receive.word};
  }

 private:
  double word_of(int processor, int word) const {
    return before_[processor * program_.words.size() + word];
  }

  // Who the received value came from. For a weighted sum that is the sender of its largest part.
  int sender(const Receive& receive) const {
    const int nobody = program_.processors;
    if (receive.route.is_sent()) {
      for (int j = 0; j < nobody; ++j) {
        if (word_of(j, receive.route.destination) == processor_) return j;
      }
      return nobody;
    }
    if (!receive.route.is_weighted()) return receive.route.sources[processor_];
    int found = nobody;
    double largest = -1;
    for (const auto& [j, weight] : receive.route.weighted[processor_]) {
      const double part = std::abs(weight * word_of(j, receive.word));
      if (part <= largest) continue;
      largest = part;
      found = j;
    }
    return found;
  }

  double received_from(const Receive& receive) const {
    if (receive.route.is_weighted()) {
      double sum = 0;
      for (const auto& [j, weight] : receive.route.weighted[processor_]) {
        sum += weight * word_of(j, receive.word);
      }
      return sum;
    }
    const int from = sender(receive);
    return from == program_.processors ? 0 : word_of(from, receive.word);
  }

  // Which operand the result is, or is most of.
  size_t decisive(const Instruction& instruction, double value) const {
    const auto operand = [&](size_t k) { return local_.results()[instruction.operands[k]]; };
    if (instruction.kind == Kind::select) return operand(0) == 1 ? 1 : 2;
    const bool one_of = instruction.kind == Kind::minimum || instruction.kind == Kind::maximum ||
                        instruction.kind == Kind::exchange;
    size_t best = 0;
    for (size_t k = 0; k < instruction.operands.size(); ++k) {
      if (one_of && operand(k) == value) return k;
      if (std::abs(operand(k)) > std::abs(operand(best))) best = k;
    }
    return best;
  }

  const StaticProgram& program_;
  const Round& round_;
  std::span<const double> before_;
  int processor_;
  LocalStep<double> local_;
};

}  // namespace

std::vector<std::optional<CarriedBy>> follow(const StaticProgram& program,
                                             std::span<const double> input, int processor,
                                             int output) {
  const std::vector<double> trace = trace_static(program, input);
  const size_t size = program.processors * program.words.size();
  std::vector<std::optional<CarriedBy>> way(program.rounds.size() + 1);
  way.back() = CarriedBy{processor, program.outputs[output]};
  for (size_t r = program.rounds.size(); r-- > 0 && way[r + 1];) {
    const std::span<const double> before = std::span(trace).subspan(r * size, size);
    way[r] =
        Look(program, program.rounds[r], before, way[r + 1]->processor).origin(way[r + 1]->word);
  }
  return way;
}

}  // namespace posattn
