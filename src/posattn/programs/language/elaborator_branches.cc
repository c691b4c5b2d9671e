// Conditions on sizes, on positions and on data.
#include <fmt/format.h>

#include <algorithm>

#include "posattn/programs/language/elaborator.h"

namespace posattn::language {

void Elaborator::execute(const IfStatement& statement, Position position, Scope& scope) {
  const Term& condition = statement.condition;
  if (arithmetic_.reads_words(condition, scope)) {
    spend_branch(position, scope);
    run_by_data(statement, position, scope);
  } else if (arithmetic_.depends_on_position(condition, scope)) {
    spend_branch(position, scope);
    run_by_position(statement, position, scope);
  } else {
    run(arithmetic_.truth(condition, scope, {}) ? statement.then : statement.otherwise, scope);
  }
}

// A branch begins with copies of all that is known by position.
void Elaborator::spend_branch(Position position, const Scope& scope) {
  const size_t copies = scope.size() + state_.changes().size();
  arithmetic_.spend(static_cast<int64_t>(copies * active_.size()), position);
}

// What the words have changed to after a branch, which leaves no names behind.
LocalState::Changes Elaborator::branch(const Block& block, const Scope& scope,
                                       std::vector<bool> active) {
  const LocalState::Changes before = state_.changes();
  Scope inner = scope;
  std::swap(active_, active);
  ++branches_;
  if (std::ranges::find(active_, true) != active_.end()) run(block, inner);
  --branches_;
  std::swap(active_, active);
  return state_.exchange(before);
}

// For each word that one of two branches has changed, what `join` makes of both.
void Elaborator::join_branches(const LocalState::Changes& then,
                               const LocalState::Changes& otherwise, const Join& join) {
  LocalState::Changes result;
  const auto after = [&](const LocalState::Changes& changes, int word) {
    const auto found = changes.find(word);
    return found == changes.end() ? state_.read({word}) : found->second;
  };
  for (const LocalState::Changes* changes : {&then, &otherwise}) {
    for (const auto& [word, cases] : *changes) {
      if (result.contains(word)) continue;
      result[word] = join(after(then, word), after(otherwise, word));
    }
  }
  state_.exchange(std::move(result));
}

Cases Elaborator::limited(Cases cases, Position position) const {
  if (static_cast<int>(cases.size()) <= limits_.pieces) return cases;
  throw source_.error(position, fmt::format("a word with {} cases by position", cases.size()),
                      fmt::format("at most {}", limits_.pieces),
                      "a receive between the statements ends a round");
}

void Elaborator::run_by_position(const IfStatement& statement, Position position, Scope& scope) {
  const std::vector<bool> here = terms_.where(statement.condition, scope, active_);
  std::vector<bool> there = active_;
  for (size_t i = 0; i < there.size(); ++i) there[i] = there[i] && !here[i];
  const LocalState::Changes then = branch(statement.then, scope, here);
  const LocalState::Changes otherwise = branch(statement.otherwise, scope, there);
  join_branches(then, otherwise, [&](const Cases& a, const Cases& b) {
    return limited(divided(here, a, b), position);
  });
}

void Elaborator::run_by_data(const IfStatement& statement, Position position, Scope& scope) {
  const Cases bit = terms_.evaluate(statement.condition, scope, active_, false);
  const LocalState::Changes then = branch(statement.then, scope, active_);
  const LocalState::Changes otherwise = branch(statement.otherwise, scope, active_);
  join_branches(then, otherwise, [&](const Cases& a, const Cases& b) {
    return limited(source_.located(position, [&] { return selected(bit, a, b); }), position);
  });
}

}  // namespace posattn::language
