// Conditions on sizes, on positions and on data.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

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

// Procedures: words by reference, and numbers.

void Elaborator::execute(const CallStatement& call, Position position, Scope& scope) {
  const auto procedure = std::ranges::find(tree_.procedures, call.procedure, &Procedure::name);
  if (procedure == tree_.procedures.end()) {
    std::vector<std::string> known;
    for (const Procedure& other : tree_.procedures) known.push_back(other.name);
    const std::string near = nearest_name(call.procedure, known);
    throw source_.error(position,
                        fmt::format("unknown procedure '{}'", call.procedure.substr(0, 60)),
                        "one that the program defines: procedure NAME(...):",
                        near.empty() ? "" : fmt::format("did you mean '{}'?", near));
  }
  if (call.arguments.size() != procedure->parameters.size()) {
    throw source_.error(position,
                        fmt::format("{} with {} arguments", call.procedure, call.arguments.size()),
                        std::to_string(procedure->parameters.size()));
  }
  if (std::ranges::find(calls_, call.procedure) != calls_.end() ||
      static_cast<int>(calls_.size()) >= limits_.call_depth) {
    throw source_.error(
        position, fmt::format("{} calls itself, or calls nest too deep", call.procedure), "a loop");
  }
  Scope inner = parameters_;
  for (size_t k = 0; k < call.arguments.size(); ++k) {
    check_new(parameters_, procedure->parameters[k], procedure->position);
    inner.insert_or_assign(procedure->parameters[k], argument(call.arguments[k], scope));
  }
  calls_.push_back(call.procedure);
  const std::string outer = std::exchange(prefix_, call.procedure + ".");
  std::vector<std::string> loops;
  std::swap(loops, loop_variables_);
  run(procedure->body, inner);
  std::swap(loops, loop_variables_);
  prefix_ = outer;
  calls_.pop_back();
}

Meaning Elaborator::argument(const Term& term, const Scope& scope) {
  if (arithmetic_.reads_words(term, scope)) {
    if (term.kind == Term::Kind::name || term.kind == Term::Kind::element) {
      WordGroup group = terms_.words(term, scope);
      group.declared = {1, 0};  // the caller's: receiving into it keeps its type
      return group;
    }
    throw source_.error(term.position, "a value as argument",
                        "a word, an array, a table, or numbers known before the program runs",
                        "put the value into a word first");
  }
  if (term.kind == Term::Kind::name) {
    const auto found = scope.find(term.name);
    if (found != scope.end() && std::holds_alternative<NumberTable>(found->second)) {
      const auto& table = std::get<NumberTable>(found->second);
      arithmetic_.spend(static_cast<int64_t>(table.numbers.size()), term.position);
      return table;
    }
  }
  return static_value(term, scope);
}

}  // namespace posattn::language
