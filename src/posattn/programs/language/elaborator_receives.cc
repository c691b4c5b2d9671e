// Receives and sums over processors.
#include <fmt/format.h>

#include <algorithm>

#include "posattn/programs/language/arithmetic.h"
#include "posattn/programs/language/elaborator.h"
#include "posattn/programs/language/local_terms.h"

namespace posattn::language {
namespace {

constexpr int64_t round_work = 500;  // in terms

// `nothing` as a destination is -1, which is no processor.
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

void Elaborator::receive(const std::string& target, const WordGroup& source,
                         const std::vector<Route>& routes, Fold fold, Position position,
                         Scope& scope) {
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
  // The target last: it may be what is read.
  std::vector<WordGroup> received;
  for (size_t r = routes.size(); r-- > 1;) {
    received.push_back(receive_group(target, fmt::format(" ({})", r), source, routes[r], position));
  }
  received.push_back(
      receive_group(target, declared ? " (received)" : "", source, routes[0], position));
  const WordGroup targets = declared ? *existing : received.back();
  if (!declared) scope.insert_or_assign(target, targets);
  if (!declared && received.size() == 1) return;
  for (size_t k = 0; k < targets.words.size(); ++k) {
    std::vector<Value> values;
    for (const WordGroup& group : received) values.push_back(builder_[group.words[k]]);
    assign(targets.words[k], everywhere(joined_as_tree(std::move(values), fold)), position);
  }
}

// A word that changed in this round ends it: others read what it was when a round began. All that
// is read, the destination too, is read in one round, before any target changes.
WordGroup Elaborator::receive_group(const std::string& name, const std::string& suffix,
                                    const WordGroup& source, Route route, Position position) {
  const size_t count = source.words.size();
  // A receive may begin a round, with all that a round holds.
  arithmetic_.spend(
      static_cast<int64_t>(count) * (round_work + builder_.processors()) + builder_.word_count(),
      position);
  std::vector<Variable> read = source.words;
  if (route.is_sent()) read.push_back({route.destination});
  const auto changed = [&](Variable variable) { return !state_.unchanged(variable); };
  if (std::ranges::any_of(read, changed)) {
    source_.located(position, [&] { state_.flush(); });
    builder_.end_round_if_changed(read);
  } else {
    for (Variable& variable : read) variable = *state_.unchanged(variable);
  }
  if (route.is_sent()) route.destination = read.back().word;
  std::vector<std::string> names;
  std::vector<Value> received;
  for (size_t k = 0; k < count; ++k) {
    names.push_back(prefix_ + (source.is_array ? fmt::format("{}[{}]", name, k) : name) + suffix);
    received.push_back(source_.located(
        position, [&] { return builder_.receive_value(names[k], read[k], route, position.line); }));
  }
  WordGroup group{{}, source.is_array, {0, 0}};
  for (size_t k = 0; k < count; ++k) {
    group.words.push_back(
        source_.located(position, [&] { return builder_.keep(names[k], received[k]); }));
    state_.forget(group.words[k]);
  }
  return group;
}

void Elaborator::execute(const ReceiveStatement& statement, Position position, Scope& scope) {
  const WordGroup source = terms_.words(statement.source, scope);
  const Route route = route_of(statement, builder_.processors(), scope, arithmetic_);
  receive(statement.target, source, {route}, nullptr, position, scope);
}

void Elaborator::execute(const SumStatement& statement, Position position, Scope& scope) {
  if (!arithmetic_.reads_words(statement.source, scope)) {
    throw source_.error(statement.source.position, "a sum without a word",
                        "sum of WEIGHT * WORD over j, the word last");
  }
  const WordGroup source = terms_.words(statement.source, scope);
  check_new(scope, statement.variable, position);
  const Route all = route_of(statement, builder_.processors(), position, scope, arithmetic_);
  if (statement.kind == SumStatement::Kind::sum) {
    receive(statement.target, source, {all}, nullptr, position, scope);
  } else {
    receive(statement.target, source, one_by_one(all, builder_.processors()),
            statement.kind == SumStatement::Kind::minimum ? minimum : maximum, position, scope);
  }
}

void Elaborator::need_whole(const Cases& destination, Position position) const {
  for (const Piece& piece : destination) {
    if (!piece.value->type.is_real()) continue;
    throw source_.error(position, "a destination of type real",
                        "a whole number: whom data names must not jump between two reals");
  }
}

// The word that holds where to: the one that is named, or one for the term's value.
Variable Elaborator::destination(const SendStatement& statement, Position position,
                                 const Scope& scope) {
  const Term term = without_nothing(statement.destination);
  const bool named = term.kind == Term::Kind::name || term.kind == Term::Kind::element;
  if (named && arithmetic_.reads_words(term, scope)) {
    const Variable word = terms_.word(term, scope);
    need_whole(builder_.type_of(word).is_real() ? everywhere(builder_[word]) : state_.read(word),
               term.position);
    return word;
  }
  Cases cases = terms_.evaluate(term, scope, active_, false);
  need_whole(cases, term.position);
  const auto [place, added] = destinations_.try_emplace(&statement, Variable{});
  if (added) {
    const std::string name = fmt::format("{}destination of {}", prefix_, statement.target);
    place->second = source_.located(position, [&] { return builder_.inferred_word(name, true); });
  }
  assign(place->second, std::move(cases), position);
  return place->second;
}

void Elaborator::execute(const SendStatement& statement, Position position, Scope& scope) {
  only_outside_branches("a message", position,
                        "every processor sends; write to PLACE if CONDITION else nothing");
  const WordGroup source = terms_.words(statement.source, scope);
  Route route;
  route.destination = destination(statement, position, scope).word;
  route.permutation = statement.permutation;
  receive(statement.target, source, {route}, nullptr, position, scope);
}

}  // namespace posattn::language
