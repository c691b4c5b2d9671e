#include <algorithm>
#include <map>

#include "posattn/programs/form/operation.h"
#include "posattn/programs/form/static_program.h"

namespace posattn {
namespace {

// Computes each value once.
void share_instructions(Round& round) {
  using Signature = std::pair<Operator, std::vector<int>>;
  std::map<Signature, int> known;
  std::vector<int> place(round.instructions.size());
  std::vector<Instruction> kept;
  for (size_t k = 0; k < round.instructions.size(); ++k) {
    Instruction instruction = std::move(round.instructions[k]);
    for (int& operand : instruction.operands) operand = place[operand];
    const Operation& row = operation(instruction.kind);
    if (row.symmetric) std::ranges::sort(instruction.operands);
    const auto [found, added] = known.try_emplace(Signature{instruction, instruction.operands},
                                                  static_cast<int>(kept.size()));
    place[k] = found->second;
    if (added) kept.push_back(std::move(instruction));
  }
  round.instructions = std::move(kept);
  for (Update& update : round.updates) update.instruction = place[update.instruction];
}

std::vector<bool> needed_instructions(const Round& round, const std::vector<bool>& live) {
  std::vector<bool> needed(round.instructions.size());
  for (const Update& update : round.updates) {
    if (live[update.word]) needed[update.instruction] = true;
  }
  for (size_t k = needed.size(); k-- > 0;) {
    if (!needed[k]) continue;
    for (const int operand : round.instructions[k].operands) needed[operand] = true;
  }
  return needed;
}

std::vector<bool> live_before(const Round& round, std::vector<bool> live) {
  const std::vector<bool> needed = needed_instructions(round, live);
  for (const Update& update : round.updates) live[update.word] = false;
  for (size_t k = 0; k < needed.size(); ++k) {
    const Instruction& instruction = round.instructions[k];
    if (!needed[k]) continue;
    if (instruction.kind == Expression::Kind::word) live[instruction.index] = true;
    if (instruction.kind == Expression::Kind::received) {
      const Receive& receive = round.receives[instruction.index];
      live[receive.word] = true;
      Route::visit_words(receive.route, [&](int word) { live[word] = true; });
    }
  }
  return live;
}

// Keeps of a list what is needed and says where each element went.
template <class T>
std::vector<int> keep(std::vector<T>& list, const std::vector<bool>& needed) {
  std::vector<int> place(list.size(), -1);
  std::vector<T> kept;
  for (size_t k = 0; k < list.size(); ++k) {
    if (!needed[k]) continue;
    place[k] = static_cast<int>(kept.size());
    kept.push_back(std::move(list[k]));
  }
  list = std::move(kept);
  return place;
}

void reduce(Round& round, const std::vector<bool>& live) {
  const std::vector<bool> needed = needed_instructions(round, live);
  std::vector<bool> received(round.receives.size());
  for (size_t k = 0; k < needed.size(); ++k) {
    const Instruction& instruction = round.instructions[k];
    if (needed[k] && instruction.kind == Expression::Kind::received)
      received[instruction.index] = true;
  }
  std::erase_if(round.updates, [&](const Update& update) { return !live[update.word]; });
  const std::vector<int> places = keep(round.instructions, needed);
  const std::vector<int> receives = keep(round.receives, received);
  for (Instruction& instruction : round.instructions) {
    for (int& operand : instruction.operands) operand = places[operand];
    if (instruction.kind == Expression::Kind::received) {
      instruction.index = receives[instruction.index];
    }
  }
  for (Update& update : round.updates) update.instruction = places[update.instruction];
}

void drop_words(StaticProgram& program, const std::vector<bool>& used) {
  const std::vector<int> place = keep(program.words, used);
  for (int& w : program.inputs) w = place[w];
  for (int& w : program.outputs) w = place[w];
  for (Round& round : program.rounds) {
    for (Receive& receive : round.receives) {
      receive.word = place[receive.word];
      Route::visit_words(receive.route, [&](int& word) { word = place[word]; });
    }
    for (Update& update : round.updates) update.word = place[update.word];
    for (Instruction& instruction : round.instructions) {
      if (instruction.kind == Expression::Kind::word) instruction.index = place[instruction.index];
    }
  }
}

}  // namespace

std::vector<std::vector<bool>> live_words(const StaticProgram& program) {
  std::vector<std::vector<bool>> live(program.rounds.size() + 1);
  live.back().assign(program.words.size(), false);
  for (const int w : program.outputs) live.back()[w] = true;
  for (size_t r = program.rounds.size(); r-- > 0;) {
    live[r] = live_before(program.rounds[r], live[r + 1]);
  }
  return live;
}

void simplify(StaticProgram& program) {
  for (Round& round : program.rounds) share_instructions(round);
  const std::vector<std::vector<bool>> live = live_words(program);
  for (size_t r = 0; r < program.rounds.size(); ++r) reduce(program.rounds[r], live[r + 1]);
  std::erase_if(program.rounds, [](const Round& round) { return round.updates.empty(); });
  std::vector<bool> used(program.words.size());
  for (const int w : program.inputs) used[w] = true;
  for (const int w : program.outputs) used[w] = true;
  for (const std::vector<bool>& before : live) {
    for (size_t w = 0; w < used.size(); ++w) used[w] = used[w] || before[w];
  }
  drop_words(program, used);
}

}  // namespace posattn
