// Declarations, assignments and names for numbers.
#include <fmt/format.h>

#include <algorithm>

#include "posattn/programs/language/arithmetic.h"
#include "posattn/programs/language/elaborator.h"

namespace posattn::language {

void Elaborator::execute(const WordStatement& word, Position position, Scope& scope) {
  only_outside_branches("a declaration", position, "declare the word before the 'if'");
  const int64_t size = word.size ? arithmetic_.size(*word.size, scope) : 1;
  if (size < 1 || size > limits_.array) {
    throw source_.error(position, fmt::format("an array of {} words", size),
                        fmt::format("from 1 to {}", limits_.array));
  }
  const WordType type = type_of(word, scope);
  // A declaration that runs again, in a loop or a procedure, means the same words.
  const auto key = std::tuple{&word, size, type.low, type.high};
  const auto known = declared_.find(key);
  if (known == declared_.end() || scope.contains(word.name)) {
    const auto here = scope.find(word.name);
    const auto* group = here == scope.end() ? nullptr : std::get_if<WordGroup>(&here->second);
    const bool again = group != nullptr && group->declared.line == position.line &&
                       group->declared.column == position.column;
    if (!again) check_new(scope, word.name, position);
  }
  if (known != declared_.end()) {
    scope.insert_or_assign(word.name, known->second);
    for (const Variable variable : known->second.words) {
      assign(variable,
             word.initial ? value(*word.initial, type, scope) : everywhere(constant_value(0)),
             position);
    }
    return;
  }
  WordGroup group{{}, word.size.has_value(), position};
  for (int64_t k = 0; k < size; ++k) {
    const std::string name =
        prefix_ + (word.size ? fmt::format("{}[{}]", word.name, k) : word.name);
    group.words.push_back(declare(word, name, type, position, scope));
  }
  if (!word.promise.empty()) {
    source_.located(position,
                    [&] { builder_.promise(parse_promise(word.promise), static_cast<int>(size)); });
  }
  declared_.emplace(key, group);
  scope.insert_or_assign(word.name, std::move(group));
}

WordType Elaborator::type_of(const WordStatement& word, const Scope& scope) {
  if (word.type == WordStatement::Type::real) return WordType::real();
  if (word.type == WordStatement::Type::bit) return WordType::bit();
  if (!word.low) return WordType::integer(0, 0);  // inferred
  const int64_t low = arithmetic_.size(*word.low, scope);
  const int64_t high = arithmetic_.size(*word.high, scope);
  if (low > high) {
    throw source_.error(word.low->position, fmt::format("int[{}..{}]", low, high),
                        "the smaller number first");
  }
  return WordType::integer(low, high);
}

Variable Elaborator::declare(const WordStatement& word, const std::string& name,
                             const WordType& type, Position position, const Scope& scope) {
  const bool inferred = word.type == WordStatement::Type::integer && !word.low;
  if (word.is_input) {
    if (!calls_.empty() || !loop_variables_.empty()) {
      throw source_.error(position, "an input inside a loop or procedure",
                          "it before: every input is given once");
    }
    if (inferred) {
      throw source_.error(position, "an input of type int", "its range, as int[0..9]",
                          "what is computed follows from the ranges of the inputs");
    }
    return source_.located(position, [&] { return builder_.input(name, type); });
  }
  const auto make = [&](std::vector<double> initial) {
    return inferred ? builder_.inferred_word(name, true, std::move(initial))
                    : builder_.word(name, type, std::move(initial));
  };
  if (!word.initial || arithmetic_.reads_words(*word.initial, scope)) {
    const Variable variable = source_.located(position, [&] { return make({}); });
    if (word.initial) assign(variable, value(*word.initial, type, scope), position);
    return variable;
  }
  std::vector<double> initial;
  for (const Number& number : terms_.numbers(*word.initial, scope, active_, type.is_real())) {
    initial.push_back(number.value);
  }
  const bool zeros = std::ranges::all_of(initial, [](double x) { return x == 0; });
  if (zeros) initial.clear();
  return source_.located(word.initial->position, [&] { return make(std::move(initial)); });
}

Cases Elaborator::value(const Term& term, const WordType& type, const Scope& scope) {
  return terms_.evaluate(term, scope, active_, type.is_real());
}

void Elaborator::assign(Variable variable, Cases cases, Position position) {
  source_.located(position, [&] {
    for (const Piece& piece : cases) builder_.check_fits(variable, piece.value);
  });
  builder_.note_line(position.line);
  state_.write(variable, std::move(cases));
}

void Elaborator::execute(const AssignStatement& statement, Position position, Scope& scope) {
  if (statement.target.kind != Term::Kind::name && statement.target.kind != Term::Kind::element) {
    throw source_.error(statement.target.position, "an assignment to a term",
                        "a word, or an element of an array of words");
  }
  if (!scope.contains(statement.target.name)) {
    throw source_.error(position,
                        fmt::format("unknown word '{}'", statement.target.name.substr(0, 60)),
                        "a word declared in a line above",
                        fmt::format("word {} : real = ...", statement.target.name.substr(0, 60)));
  }
  const Variable variable = terms_.word(statement.target, scope);
  assign(variable, value(statement.value, builder_.type_of(variable), scope), position);
}

void Elaborator::execute(const LetStatement& let, Position position, Scope& scope) {
  const auto found = scope.find(let.name);
  if (found != scope.end()) {
    const bool number = std::holds_alternative<Number>(found->second) ||
                        std::holds_alternative<Numbers>(found->second);
    const bool loops = std::ranges::find(loop_variables_, let.name) != loop_variables_.end();
    if (!number || loops || parameters_.contains(let.name)) check_new(scope, let.name, position);
  }
  if (arithmetic_.reads_words(let.value, scope)) {
    throw source_.error(let.value.position, "a word in 'let'",
                        "what is known before the program runs: n, i, loop variables",
                        fmt::format("word {} : real = ...", let.name));
  }
  scope.insert_or_assign(let.name, static_value(let.value, scope));
}

Meaning Elaborator::static_value(const Term& term, const Scope& scope) {
  if (!arithmetic_.depends_on_position(term, scope)) {
    return arithmetic_.evaluate(term, scope, {});
  }
  return terms_.numbers(term, scope, active_, false);
}

void Elaborator::execute(const TableStatement& statement, Position position, Scope& scope) {
  const auto found = scope.find(statement.name);
  if (found != scope.end() && !std::holds_alternative<NumberTable>(found->second)) {
    check_new(scope, statement.name, position);
  }
  scope.insert_or_assign(
      statement.name, make_table(statement, position, builder_.processors(), scope, arithmetic_));
}

}  // namespace posattn::language
