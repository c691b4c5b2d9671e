// Procedures: words by reference, and numbers.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "posattn/programs/language/elaborator.h"

namespace posattn::language {

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
