// Who hears what: receives and sums over processors.
#include <fmt/format.h>

#include "posattn/programs/language/elaborator.h"
#include "posattn/programs/language/routes.h"

namespace posattn::language {

namespace {

constexpr int64_t round_work = 500;  // in terms

// As a destination: -1, where nobody is.
Term without_nothing(Term term) {
  if (term.kind == Term::Kind::nothing) {
    term.kind = Term::Kind::number;
    term.number = -1;
    term.whole = true;
  }
  for (Term& operand : term.operands) operand = without_nothing(std::move(operand));
  return term;
}

}  // namespace

// A source that changed in this round ends it: others read what it was when a round began.
void Elaborator::receive(const std::string& target, const WordGroup& source, const Route& route,
                         Position position, Scope& scope) {
  only_outside_branches("a receive", position,
                        "every processor receives; write from PLACE if CONDITION else nothing");
  const auto found = scope.find(target);
  const auto* existing = found == scope.end() ? nullptr : std::get_if<WordGroup>(&found->second);
  if (found != scope.end() && existing == nullptr) check_new(scope, target, position);
  const bool declared = existing != nullptr && existing->declared.line > 0;
  if (declared && existing->words.size() != source.words.size()) {
    throw source_.error(position, fmt::format("{} words for '{}'", source.words.size(), target),
                        std::to_string(existing->words.size()));
  }
  std::vector<size_t> order;  // what has changed first: the others join its round
  for (const bool changed : {true, false}) {
    for (size_t k = 0; k < source.words.size(); ++k) {
      if (!state_.unchanged(source.words[k]) == changed) order.push_back(k);
    }
  }
  // A receive may begin a round, with all that a round holds.
  arithmetic_.spend(static_cast<int64_t>(order.size()) * (round_work + builder_.processors()) +
                        builder_.word_count(),
                    position);
  if (!state_.unchanged(source.words[order[0]])) located(position, [&] { state_.flush(); });
  WordGroup group{std::vector<Variable>(order.size()), source.is_array, {0, 0}};
  for (const size_t k : order) {
    std::string name = prefix_ + (source.is_array ? fmt::format("{}[{}]", target, k) : target);
    if (declared) name += " (received)";
    group.words[k] = located(position, [&] {
      const Variable from = state_.unchanged(source.words[k]).value_or(source.words[k]);
      return builder_.receive(name, from, route, position.line);
    });
    state_.forget(group.words[k]);
  }
  if (!declared) {
    scope.insert_or_assign(target, std::move(group));
    return;
  }
  const WordGroup targets = *existing;
  for (size_t k = 0; k < order.size(); ++k) {
    assign(targets.words[k], everywhere(builder_[group.words[k]]), position);
  }
}

void Elaborator::execute(const ReceiveStatement& statement, Position position, Scope& scope) {
  const WordGroup source = terms_.words(statement.source, scope);
  const Route route = route_of(statement, builder_.processors(), scope, arithmetic_);
  receive(statement.target, source, route, position, scope);
}

void Elaborator::execute(const SumStatement& statement, Position position, Scope& scope) {
  if (!arithmetic_.reads_words(statement.source, scope)) {
    throw source_.error(statement.source.position, "a sum without a word",
                        "sum of WEIGHT * WORD over j, the word last");
  }
  const WordGroup source = terms_.words(statement.source, scope);
  check_new(scope, statement.variable, position);
  const Route route = route_of(statement, builder_.processors(), position, scope, arithmetic_);
  receive(statement.target, source, route, position, scope);
}

// The word that holds where to: the one that is named, or one for the term's value.
Variable Elaborator::destination(const SendStatement& statement, Position position,
                                 const Scope& scope) {
  const Term term = without_nothing(statement.destination);
  const bool named = term.kind == Term::Kind::name || term.kind == Term::Kind::element;
  if (named && arithmetic_.reads_words(term, scope)) return terms_.word(term, scope);
  Cases cases = terms_.evaluate(term, scope, active_, false);
  WordType type = WordType::integer(0, 0);
  for (const Piece& piece : cases) type = hull(type, piece.value->type);
  if (type.is_real()) {
    throw source_.error(term.position, "a destination of type real",
                        "a whole number: whom data names must not jump between two reals");
  }
  const auto [place, added] =
      destinations_.try_emplace({&statement, type.low, type.high}, Variable{});
  if (added) {
    place->second = located(position, [&] {
      return builder_.word(fmt::format("{}destination of {}", prefix_, statement.target), type);
    });
  }
  assign(place->second, std::move(cases), position);
  return place->second;
}

void Elaborator::execute(const SendStatement& statement, Position position, Scope& scope) {
  only_outside_branches("a message", position,
                        "every processor sends; write to PLACE if CONDITION else nothing");
  const WordGroup source = terms_.words(statement.source, scope);
  const Variable to = destination(statement, position, scope);
  if (builder_.type_of(to).is_real()) {
    throw source_.error(statement.destination.position, "a destination of type real",
                        "a whole number: whom data names must not jump between two reals");
  }
  const std::optional<Variable> unchanged = state_.unchanged(to);
  if (!unchanged) located(position, [&] { state_.flush(); });
  Route route;
  route.destination = unchanged.value_or(to).word;
  route.permutation = statement.permutation;
  receive(statement.target, source, route, position, scope);
}

}  // namespace posattn::language
