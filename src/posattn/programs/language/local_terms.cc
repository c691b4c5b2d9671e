#include "posattn/programs/language/local_terms.h"

#include <fmt/format.h>

#include <algorithm>

namespace posattn::language {
namespace {

using Kind = Term::Kind;

Value greater(const Value& a, const Value& b) {
  return b->type.is_real() ? at_least(a, b) : at_least(a, add(b, constant_value(1)));
}
Value less(const Value& a, const Value& b) { return greater(b, a); }
Value at_most(const Value& a, const Value& b) { return at_least(b, a); }
Value unequal(const Value& a, const Value& b) { return negation(equal(a, b)); }
Value negative(const Value& a) { return scale(-1, a); }

void need_bits(const char* name, const Value& a, const Value& b) {
  for (const Value& value : {a, b}) {
    if (value->type.kind == WordType::Kind::bit) continue;
    throw Error(ExitCode::configuration,
                fmt::format("'{}' of a value of type {}", name, to_string(value->type)),
                "bits, as comparisons of integers give");
  }
}
Value conjunction(const Value& a, const Value& b) {
  need_bits("and", a, b);
  return minimum(a, b);
}
Value disjunction(const Value& a, const Value& b) {
  need_bits("or", a, b);
  return maximum(a, b);
}

WordType type_of(const Numbers& numbers) {
  WordType type = WordType::bit();
  double low = numbers[0].value, high = low;
  for (const Number& number : numbers) {
    if (number.kind == Number::Kind::real) type.kind = WordType::Kind::real;
    if (number.kind == Number::Kind::whole && !type.is_real()) {
      type.kind = WordType::Kind::integer;
    }
    low = std::min(low, number.value);
    high = std::max(high, number.value);
  }
  if (type.is_real()) return WordType::real();
  if (type.kind == WordType::Kind::bit || (low >= 0 && high <= 1)) return WordType::bit();
  return WordType::integer(static_cast<int64_t>(low), static_cast<int64_t>(high));
}

bool is_everywhere(const Piece& piece) { return piece.where.empty(); }

// Adds a case, if it holds anywhere; the same value in two cases is one.
void add_case(Cases& cases, std::vector<bool> where, const Value& value) {
  if (std::ranges::none_of(where, [](bool here) { return here; })) return;
  for (Piece& piece : cases) {
    if (piece.value != value) continue;
    for (size_t i = 0; i < where.size(); ++i) piece.where[i] = piece.where[i] || where[i];
    return;
  }
  cases.push_back({std::move(where), value});
}

std::vector<bool> both(const std::vector<bool>& a, const std::vector<bool>& b) {
  if (a.empty()) return b;
  if (b.empty()) return a;
  std::vector<bool> result(a.size());
  for (size_t i = 0; i < a.size(); ++i) result[i] = a[i] && b[i];
  return result;
}

Cases simplified(Cases cases) {
  if (cases.size() == 1) cases[0].where.clear();
  return cases;
}

}  // namespace

WordGroup LocalTerms::words(const Term& term, const Scope& scope) {
  const Source& source = arithmetic_.source();
  const bool named = term.kind == Kind::name || term.kind == Kind::element;
  const bool reserved = named && (term.name == "n" || term.name == "i" || term.name == "pi");
  const Meaning* means = named && !reserved ? &arithmetic_.meaning(term, scope) : nullptr;
  const auto* group = means == nullptr ? nullptr : std::get_if<WordGroup>(means);
  if (group == nullptr) {
    throw source.error(term.position,
                       named ? fmt::format("'{}'", term.name.substr(0, 60)) : "a term",
                       "a word, or an element of an array of words",
                       named ? "" : "give it a name first: word t : real = ...");
  }
  if (term.kind == Kind::name) return *group;
  if (!group->is_array || term.operands.size() != 1) {
    throw source.error(term.position, fmt::format("indices of '{}'", term.name.substr(0, 60)),
                       group->is_array ? "one index" : "none: it is no array");
  }
  const int64_t index = arithmetic_.size(term.operands[0], scope);
  if (index < 0 || index >= static_cast<int64_t>(group->words.size())) {
    throw source.error(term.operands[0].position,
                       fmt::format("{}[{}]", term.name.substr(0, 60), index),
                       fmt::format("an index from 0 to {}", group->words.size() - 1));
  }
  return {{group->words[static_cast<size_t>(index)]}, false, group->declared};
}

Variable LocalTerms::word(const Term& term, const Scope& scope) {
  const WordGroup group = words(term, scope);
  if (!group.is_array) return group.words[0];
  throw arithmetic_.source().error(term.position,
                                   fmt::format("the whole array '{}'", term.name.substr(0, 60)),
                                   "one word of it, " + term.name.substr(0, 60) + "[k]",
                                   "only receive takes whole arrays; loop over the elements");
}

Numbers LocalTerms::numbers(const Term& term, const Scope& scope, const std::vector<bool>& active,
                            bool wants_real) {
  Numbers result(active.size());
  const auto first = static_cast<size_t>(std::ranges::find(active, true) - active.begin());
  if (first == active.size()) return result;
  for (size_t i = first; i < active.size(); ++i) {
    if (!active[i]) continue;
    Point point;
    point.processor = static_cast<int>(i);
    point.wants_real = wants_real;
    result[i] = arithmetic_.evaluate(term, scope, point);
  }
  for (size_t i = 0; i < active.size(); ++i) {
    if (!active[i]) result[i] = result[first];
  }
  return result;
}

std::vector<bool> LocalTerms::where(const Term& term, const Scope& scope,
                                    const std::vector<bool>& active) {
  std::vector<bool> result(active.size());
  for (size_t i = 0; i < active.size(); ++i) {
    Point point;
    point.processor = static_cast<int>(i);
    result[i] = active[i] && arithmetic_.truth(term, scope, point);
  }
  return result;
}

Cases LocalTerms::evaluate(const Term& term, const Scope& scope, const std::vector<bool>& active,
                           bool wants_real) {
  return evaluate(term, Context{scope, active, wants_real});
}

Cases LocalTerms::constant(const Term& term, const Context& context) {
  if (!arithmetic_.depends_on_position(term, context.scope)) {
    Point point;
    point.wants_real = context.wants_real;
    return everywhere(constant_value(arithmetic_.evaluate(term, context.scope, point).value));
  }
  const Numbers values = numbers(term, context.scope, context.active, context.wants_real);
  std::vector<double> plain;
  for (const Number& value : values) plain.push_back(value.value);
  if (std::ranges::all_of(plain, [&](double x) { return x == plain[0]; })) {
    return everywhere(constant_value(plain[0]));
  }
  const Variable word = state_.constants(type_of(values), plain);
  return everywhere(state_.builder()[word]);
}

Cases LocalTerms::limited(const Term& term, Cases cases) const {
  const int most = arithmetic_.limits().pieces;
  if (static_cast<int>(cases.size()) <= most) return cases;
  throw arithmetic_.source().error(
      term.position, fmt::format("a value with {} cases by position", cases.size()),
      fmt::format("at most {}", most), "a receive between the statements ends a round");
}

Cases LocalTerms::pairs(const Term& term, const Term& left, const Term& right,
                        const Context& context, Value (*f)(const Value&, const Value&)) {
  const Cases a = evaluate(left, context), b = evaluate(right, context);
  if (a.size() * b.size() > 1) {
    arithmetic_.spend(static_cast<int64_t>(a.size() * b.size() * context.active.size()),
                      term.position);
  }
  return limited(term, located(term, [&] { return combined(a, b, f); }));
}

Cases LocalTerms::each(const Term& term, const Term& operand, const Context& context,
                       Value (*f)(const Value&)) {
  const Cases a = evaluate(operand, context);
  return located(term, [&] { return mapped(a, f); });
}

Cases LocalTerms::evaluate(const Term& term, const Context& context) {
  arithmetic_.spend(1, term.position);
  if (!arithmetic_.reads_words(term, context.scope)) return constant(term, context);
  const auto& operands = term.operands;
  const auto two = [&](Value (*f)(const Value&, const Value&)) {
    return pairs(term, operands[0], operands[1], context, f);
  };
  // Comparisons are of whole numbers, whatever their result is for.
  const auto compared = [&](Value (*f)(const Value&, const Value&)) {
    return pairs(term, operands[0], operands[1], Context{context.scope, context.active, false}, f);
  };
  switch (term.kind) {
    case Kind::name:
    case Kind::element:
      return state_.read(word(term, context.scope));
    case Kind::call:
      return of_call(term, context);
    case Kind::approximation:
      return of_approximation(term, context);
    case Kind::negate:
      return each(term, operands[0], context, negative);
    case Kind::add:
      return two(add);
    case Kind::subtract:
      return two(subtract);
    case Kind::divide:
      return of_quotient(term, context);
    case Kind::multiply:
      return of_product(term, context);
    case Kind::modulo:
      return of_modulo(term, context);
    case Kind::exclusive_or:
      return of_exclusive_or(term, context);
    case Kind::equal:
      return compared(equal);
    case Kind::unequal:
      return compared(unequal);
    case Kind::less:
      return compared(less);
    case Kind::less_equal:
      return compared(at_most);
    case Kind::greater:
      return compared(greater);
    case Kind::greater_equal:
      return compared(at_least);
    case Kind::logical_not:
      return each(term, operands[0], context, negation);
    case Kind::logical_and:
      return two(conjunction);
    case Kind::logical_or:
      return two(disjunction);
    case Kind::conditional:
      return of_conditional(term, operands[0], operands[1], operands[2], context);
    default:  // a number reads no word
      throw arithmetic_.source().error(term.position, "a term without a value", "numbers or words");
  }
}

Cases everywhere(Value value) { return {{{}, std::move(value)}}; }

Cases mapped(const Cases& a, const std::function<Value(const Value&)>& f) {
  Cases result;
  for (const Piece& piece : a) result.push_back({piece.where, f(piece.value)});
  return result;
}

Cases combined(const Cases& a, const Cases& b,
               const std::function<Value(const Value&, const Value&)>& f) {
  if (is_everywhere(b[0])) return mapped(a, [&](const Value& x) { return f(x, b[0].value); });
  if (is_everywhere(a[0])) return mapped(b, [&](const Value& y) { return f(a[0].value, y); });
  Cases result;
  for (const Piece& left : a) {
    for (const Piece& right : b) {
      const std::vector<bool> where = both(left.where, right.where);
      if (std::ranges::none_of(where, [](bool here) { return here; })) continue;
      add_case(result, where, f(left.value, right.value));
    }
  }
  return simplified(std::move(result));
}

Cases divided(const std::vector<bool>& where, const Cases& a, const Cases& b) {
  std::vector<bool> elsewhere = where;
  elsewhere.flip();
  Cases result;
  for (const Piece& piece : a) add_case(result, both(piece.where, where), piece.value);
  for (const Piece& piece : b) add_case(result, both(piece.where, elsewhere), piece.value);
  return simplified(std::move(result));
}

Cases selected(const Cases& bit, const Cases& a, const Cases& b) {
  Cases result;
  for (const Piece& piece : bit) {
    const Cases here = combined(a, b, [&](const Value& x, const Value& y) {
      return x == y ? x : select(piece.value, x, y);
    });
    result = result.empty() ? here : divided(piece.where, here, result);
  }
  return result;
}

Cases LocalState::read(Variable variable) const {
  const auto found = changed_.find(variable.word);
  return found == changed_.end() ? everywhere(builder_[variable]) : found->second;
}

std::optional<Variable> LocalState::unchanged(Variable variable) const {
  const auto is_word = [](const Value& value) { return value->kind == Expression::Kind::word; };
  const auto found = changed_.find(variable.word);
  if (found == changed_.end()) {  // the builder follows the copies that it knows of
    return is_word(builder_[variable]) ? std::optional(variable) : std::nullopt;
  }
  const Cases& now = found->second;
  if (now.size() != 1 || !is_word(now[0].value)) return std::nullopt;
  const Variable copied{now[0].value->index};
  // Another may have been received into it in this round.
  const Value& there = builder_[copied];
  return is_word(there) && there->index == copied.word ? std::optional(copied) : std::nullopt;
}

void LocalState::flush() {
  for (auto& [word, cases] : changed_) {
    if (is_everywhere(cases[0])) {
      builder_.set({word}, cases[0].value);
    } else {
      builder_.set({word}, std::move(cases));
    }
  }
  changed_.clear();
}

Variable LocalState::constants(const WordType& type, const std::vector<double>& by_processor) {
  const auto [place, added] =
      constants_.try_emplace({static_cast<int>(type.kind), by_processor}, Variable{});
  if (added) {
    place->second =
        builder_.word(fmt::format("constants {}", constants_.size()), type, by_processor);
  }
  return place->second;
}

}  // namespace posattn::language
