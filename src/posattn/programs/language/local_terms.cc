#include "posattn/programs/language/local_terms.h"

#include <fmt/format.h>

#include <algorithm>

#include "posattn/programs/language/term_parser.h"

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
                       "a word, or an element of an array of words");
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
  Cases result;
  try {
    result = combined(a, b, f);
  } catch (const Error& error) {
    throw arithmetic_.source().error(term.position, error);
  }
  return limited(term, std::move(result));
}

Cases LocalTerms::each(const Term& term, const Term& operand, const Context& context,
                       Value (*f)(const Value&)) {
  const Cases a = evaluate(operand, context);
  try {
    return mapped(a, f);
  } catch (const Error& error) {
    throw arithmetic_.source().error(term.position, error);
  }
}

Cases LocalTerms::evaluate(const Term& term, const Context& context) {
  arithmetic_.spend(1, term.position);
  if (!arithmetic_.reads_words(term, context.scope)) return constant(term, context);
  const auto& operands = term.operands;
  const auto two = [&](Value (*f)(const Value&, const Value&)) {
    return pairs(term, operands[0], operands[1], context, f);
  };
  switch (term.kind) {
    case Kind::name:
    case Kind::element:
      return state_.read(word(term, context.scope));
    case Kind::call:
      return of_call(term, context);
    case Kind::negate:
      return each(term, operands[0], context, negative);
    case Kind::add:
      return two(add);
    case Kind::subtract:
      return two(subtract);
    case Kind::multiply:
    case Kind::divide:
      return of_product(term, context);
    case Kind::equal:
      return two(equal);
    case Kind::unequal:
      return two(unequal);
    case Kind::less:
      return two(less);
    case Kind::less_equal:
      return two(at_most);
    case Kind::greater:
      return two(greater);
    case Kind::greater_equal:
      return two(at_least);
    case Kind::logical_not:
      return each(term, operands[0], context, negation);
    case Kind::logical_and:
      return two(conjunction);
    case Kind::logical_or:
      return two(disjunction);
    case Kind::conditional:
      return of_conditional(term, operands[0], operands[1], operands[2], context);
    default:
      throw arithmetic_.source().error(
          term.position, "% or xor of a word",
          "+, -, constant factors, min, max, abs, relu, comparisons: what ReLUs compute exactly",
          "these are for indices, before the program runs");
  }
}

Cases LocalTerms::of_product(const Term& term, const Context& context) {
  const bool divides = term.kind == Kind::divide;
  const bool left = arithmetic_.reads_words(term.operands[0], context.scope);
  const bool right = arithmetic_.reads_words(term.operands[1], context.scope);
  const Source& source = arithmetic_.source();
  if (right && (left || divides)) {
    throw source.error(term.position, divides ? "a division by a word" : "a product of two words",
                       "one side known before the program runs",
                       "the network's layers are piecewise linear in the data");
  }
  const Term& factor = term.operands[left ? 1 : 0];
  if (arithmetic_.depends_on_position(factor, context.scope)) {
    throw source.error(factor.position, "a factor that depends on the processor",
                       "the same factor for all processors",
                       "write receive y = sum of FACTOR * x over j where j == i");
  }
  Point point;
  point.wants_real = context.wants_real;
  double number = arithmetic_.evaluate(factor, context.scope, point).value;
  if (divides) {
    if (number == 0) throw source.error(term.position, "a division by zero", "another divisor");
    number = 1 / number;
  }
  return mapped(evaluate(term.operands[left ? 0 : 1], context),
                [&](const Value& value) { return scale(number, value); });
}

Cases LocalTerms::of_call(const Term& term, const Context& context) {
  const std::string& name = term.name;
  const auto needs = [&](size_t wanted) {
    if (term.operands.size() == wanted) return;
    throw arithmetic_.source().error(
        term.position, fmt::format("{} with {} arguments", name, term.operands.size()),
        std::to_string(wanted));
  };
  if (name == "abs" || name == "relu") {
    needs(1);
    return each(term, term.operands[0], context, name == "abs" ? absolute : relu);
  }
  if (name == "choose") {
    needs(3);
    return of_conditional(term, term.operands[0], term.operands[1], term.operands[2], context);
  }
  if (name != "min" && name != "max") {
    throw arithmetic_.source().error(
        term.position, fmt::format("{} of a word", name.substr(0, 60)),
        "min, max, abs, relu or choose: what ReLUs compute exactly",
        is_function(name) ? "" : "a procedure is called on a line of its own");
  }
  if (term.operands.size() < 2) needs(2);
  // As a tree: of depth log2 instead of one less than the number of arguments.
  std::vector<Cases> values;
  for (const Term& operand : term.operands) values.push_back(evaluate(operand, context));
  while (values.size() > 1) {
    std::vector<Cases> next;
    for (size_t k = 0; k + 1 < values.size(); k += 2) {
      next.push_back(
          limited(term, combined(values[k], values[k + 1], name == "min" ? minimum : maximum)));
    }
    if (values.size() % 2 == 1) next.push_back(std::move(values.back()));
    values = std::move(next);
  }
  return values[0];
}

Cases LocalTerms::of_conditional(const Term& term, const Term& condition, const Term& then,
                                 const Term& otherwise, const Context& context) {
  const Scope& scope = context.scope;
  if (arithmetic_.reads_words(condition, scope)) {
    const Cases bit = evaluate(condition, context);
    const Cases a = evaluate(then, context), b = evaluate(otherwise, context);
    Cases result;
    try {
      result = selected(bit, a, b);
    } catch (const Error& error) {
      throw arithmetic_.source().error(term.position, error);
    }
    return limited(term, std::move(result));
  }
  if (!arithmetic_.depends_on_position(condition, scope)) {
    return evaluate(arithmetic_.truth(condition, scope, {}) ? then : otherwise, context);
  }
  const std::vector<bool> here = where(condition, scope, context.active);
  std::vector<bool> there = context.active;
  for (size_t i = 0; i < here.size(); ++i) there[i] = there[i] && !here[i];
  const auto any = [](const std::vector<bool>& list) {
    return std::ranges::find(list, true) != list.end();
  };
  if (!any(here)) return evaluate(otherwise, context);
  if (!any(there)) return evaluate(then, context);
  const Cases a = evaluate(then, Context{scope, here, context.wants_real});
  const Cases b = evaluate(otherwise, Context{scope, there, context.wants_real});
  return limited(term, divided(here, a, b));
}

}  // namespace posattn::language
