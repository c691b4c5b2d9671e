#include "posattn/programs/form/local_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "posattn/base/error.h"
#include "posattn/programs/form/operation.h"

namespace posattn {
namespace {

using Operands = std::array<double, most_operands>;

template <class T>
Operands operands_of(const Instruction& instruction, const std::vector<T>& results) {
  Operands operands{};
  for (size_t k = 0; k < instruction.operands.size(); ++k) {
    operands[k] = static_cast<double>(results[instruction.operands[k]]);
  }
  return operands;
}

// One instruction's result from those of its operands.
template <class T>
T result_of(const Instruction& instruction, const std::vector<T>& results, const T* words,
            const T* received) {
  if (instruction.kind == Expression::Kind::word) return words[instruction.index];
  if (instruction.kind == Expression::Kind::received) return received[instruction.index];
  const Operands operands = operands_of(instruction, results);
  return static_cast<T>(operation(instruction.kind).value(instruction, operands.data()));
}

// Why an instruction has no value, on which processor and in which round.
template <class T>
Error no_value(const Instruction& instruction, const std::vector<T>& results,
               const StaticProgram& program, int round, int processor) {
  Refusal refusal{"an overflow", "smaller numbers"};
  if (const auto row = operation(instruction.kind).refusal) {
    refusal = row(instruction, operands_of(instruction, results).data());
  }
  return Error(ExitCode::data,
               fmt::format("{} on processor {} in {} of program '{}'", refusal.problem, processor,
                           place_of(program, round), program.name),
               refusal.expected);
}

}  // namespace

template <class T>
void LocalStep<T>::run(const Round& round, const T* words, const T* received, T* out) {
  results_.resize(round.instructions.size());
  for (size_t k = 0; k < round.instructions.size(); ++k) {
    results_[k] = result_of(round.instructions[k], results_, words, received);
  }
  for (const Update& update : round.updates) out[update.word] = results_[update.instruction];
}

template <class T>
void LocalStep<T>::check(const StaticProgram& program, int number, int processor) const {
  if (std::ranges::none_of(results_, [](T x) { return std::isnan(x); })) return;
  const Round& round = program.rounds[number];
  const auto is_nan = [&](int k) { return std::isnan(results_[k]); };
  const auto without_value = std::ranges::find_if(
      round.updates, [&](const Update& update) { return is_nan(update.instruction); });
  if (without_value == round.updates.end()) return check_left_out(program, number, processor);
  int k = without_value->instruction;
  for (auto from = round.instructions[k].operands.begin();;) {  // down to where it begins
    const std::vector<int>& operands = round.instructions[k].operands;
    from = std::ranges::find_if(operands, is_nan);
    if (from == operands.end()) break;
    k = *from;
  }
  throw no_value(round.instructions[k], results_, program, number, processor);
}

// Once more, as the network computes: its tables go on straight beyond their range, and what comes
// of that must be shut out as any other number.
template <class T>
void LocalStep<T>::check_left_out(const StaticProgram& program, int number, int processor) const {
  const Round& round = program.rounds[number];
  std::vector<double> results;
  for (size_t k = 0; k < round.instructions.size(); ++k) {
    const Instruction& instruction = round.instructions[k];
    if (instruction.reads()) {
      results.push_back(static_cast<double>(results_[k]));
      continue;
    }
    const Operands operands = operands_of(instruction, results);
    const bool is_table = instruction.kind == Operator::Kind::curve;
    results.push_back(is_table ? (*instruction.table)(operands[0])
                               : operation(instruction.kind).value(instruction, operands.data()));
    if (std::isnan(results[k])) throw no_value(instruction, results, program, number, processor);
  }
}

template class LocalStep<float>;
template class LocalStep<double>;

}  // namespace posattn
