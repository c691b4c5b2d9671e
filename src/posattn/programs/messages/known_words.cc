#include "posattn/programs/messages/known_words.h"

#include <algorithm>

#include "posattn/programs/form/operation.h"

namespace posattn {
namespace {

using Numbers = std::vector<double>;  // by processor; empty: not known

class Knowledge {
 public:
  explicit Knowledge(const StaticProgram& program) : program_(program) {
    for (const Word& word : program.words) {
      words_.push_back(word.initial.empty() ? Numbers(program.processors) : word.initial);
    }
    for (const int input : program.inputs) words_[input].clear();
  }

  const std::vector<Numbers>& words() const { return words_; }

  void step(const Round& round) {
    std::vector<Numbers> results;
    for (const Instruction& instruction : round.instructions) {
      results.push_back(result(instruction, round, results));
    }
    for (const Update& update : round.updates) words_[update.word] = results[update.instruction];
  }

 private:
  Numbers heard(const Receive& receive) const {
    const Numbers& word = words_[receive.word];
    if (word.empty() || receive.route.is_sent() || receive.route.is_weighted()) return {};
    Numbers numbers;
    for (const int32_t j : receive.route.sources) {
      numbers.push_back(j == program_.processors ? 0 : word[j]);
    }
    return numbers;
  }

  Numbers result(const Instruction& instruction, const Round& round,
                 const std::vector<Numbers>& results) const {
    if (instruction.kind == Operator::Kind::word) return words_[instruction.index];
    if (instruction.kind == Operator::Kind::received)
      return heard(round.receives[instruction.index]);
    for (const int operand : instruction.operands) {
      if (results[operand].empty()) return {};
    }
    Numbers numbers;
    std::vector<double> operands(instruction.operands.size());
    for (int i = 0; i < program_.processors; ++i) {
      std::ranges::transform(instruction.operands, operands.begin(),
                             [&](int operand) { return results[operand][i]; });
      numbers.push_back(operation(instruction.kind).value(instruction, operands.data()));
    }
    return numbers;
  }

  const StaticProgram& program_;
  std::vector<Numbers> words_;
};

}  // namespace

std::vector<std::vector<std::vector<double>>> known_words(const StaticProgram& program) {
  Knowledge knowledge(program);
  std::vector<std::vector<Numbers>> known;
  for (const Round& round : program.rounds) {
    known.push_back(knowledge.words());
    knowledge.step(round);
  }
  return known;
}

}  // namespace posattn
