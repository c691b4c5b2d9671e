// Products, quotients, functions and choices of words.
#include <fmt/format.h>

#include <algorithm>

#include "posattn/programs/form/function_table.h"
#include "posattn/programs/language/local_terms.h"
#include "posattn/programs/language/term_parser.h"

namespace posattn::language {
namespace {

bool are_bits(const Cases& cases) {
  return std::ranges::all_of(
      cases, [](const Piece& piece) { return piece.value->type.kind == WordType::Kind::bit; });
}

}  // namespace

// The factor of a word: a number that is the same for all processors.
Number LocalTerms::factor(const Term& term, const Context& context) {
  if (arithmetic_.depends_on_position(term, context.scope)) {
    throw arithmetic_.source().error(term.position, "a factor that depends on the processor",
                                     "the same factor for all processors",
                                     "write receive y = sum of FACTOR * x over j where j == i");
  }
  Point point;
  point.wants_real = context.wants_real;
  const Number number = arithmetic_.evaluate(term, context.scope, point);
  if (number.kind != Number::Kind::truth) return number;
  throw arithmetic_.source().error(term.position, "a condition as factor", "a number",
                                   "write (1 if CONDITION else 0)");
}

Cases LocalTerms::of_product(const Term& term, const Context& context) {
  const Term &left = term.operands[0], &right = term.operands[1];
  const bool of_left = arithmetic_.reads_words(left, context.scope);
  if (of_left && arithmetic_.reads_words(right, context.scope)) {
    return pairs(term, left, right, context, product);
  }
  const Term &word = of_left ? left : right, &number = of_left ? right : left;
  const Cases value = evaluate(word, context);
  if (are_bits(value) && arithmetic_.depends_on_position(number, context.scope)) {
    return pairs(term, word, number, context, product);
  }
  const double by = factor(number, context).value;
  return mapped(value, [&](const Value& x) { return scale(by, x); });
}

// An integer divided by a whole number is rounded down, as for indices. Where a real is wanted the
// quotient is real.
Cases LocalTerms::of_quotient(const Term& term, const Context& context) {
  const Number divisor = static_divisor(term, context);
  const bool rounds = divisor.kind == Number::Kind::whole && !context.wants_real;
  const Cases dividend = evaluate(term.operands[0], context);
  spend_staircases(term, dividend.size());
  return located(term, [&] {
    return mapped(dividend, [&](const Value& x) {
      return rounds && !x->type.is_real() ? quotient(x, divisor.value)
                                          : scale(1 / divisor.value, x);
    });
  });
}

Cases LocalTerms::of_modulo(const Term& term, const Context& context) {
  const Context whole{context.scope, context.active, false};
  const Number divisor = static_divisor(term, whole);
  const Cases dividend = evaluate(term.operands[0], whole);
  spend_staircases(term, dividend.size());
  return located(term, [&] {
    return mapped(dividend, [&](const Value& x) { return remainder(x, divisor.value); });
  });
}

Cases LocalTerms::of_exclusive_or(const Term& term, const Context& context) {
  const Context whole{context.scope, context.active, false};
  const Cases a = evaluate(term.operands[0], whole), b = evaluate(term.operands[1], whole);
  spend_staircases(term, a.size() * b.size());
  return limited(term, located(term, [&] { return combined(a, b, exclusive_or); }));
}

// Every case has steps of its own.
void LocalTerms::spend_staircases(const Term& term, size_t cases) {
  constexpr int64_t work = 4096;
  arithmetic_.spend(static_cast<int64_t>(cases) * work, term.position);
}

Number LocalTerms::static_divisor(const Term& term, const Context& context) {
  const Source& source = arithmetic_.source();
  if (arithmetic_.reads_words(term.operands[1], context.scope)) {
    throw source.error(term.position, "a division by a word",
                       "a divisor known before the program runs",
                       "reciprocal(y) on [LOW, HIGH] within 0.001 approaches 1 / y");
  }
  const Number divisor = factor(term.operands[1], context);
  if (divisor.value != 0) return divisor;
  throw source.error(term.position, "a division by zero", "another divisor");
}

// The arguments, an array's words one by one.
std::vector<Cases> LocalTerms::arguments(const Term& term, const Context& context) {
  std::vector<Cases> values;
  bool arrays = false;
  for (const Term& operand : term.operands) {
    const auto found =
        operand.kind == Term::Kind::name ? context.scope.find(operand.name) : context.scope.end();
    const auto* group =
        found == context.scope.end() ? nullptr : std::get_if<WordGroup>(&found->second);
    if (group == nullptr || !group->is_array) {
      values.push_back(evaluate(operand, context));
      continue;
    }
    arrays = true;
    arithmetic_.spend(static_cast<int64_t>(group->words.size()), operand.position);
    for (const Variable word : group->words) values.push_back(state_.read(word));
  }
  if (values.size() > 1 || arrays) return values;
  throw arithmetic_.source().error(term.position, term.name + " of one word",
                                   "two or more, or an array");
}

Cases LocalTerms::of_approximation(const Term& term, const Context& context) {
  const size_t arguments = term.operands.size() - 3;
  const size_t wanted = term.name == "product" ? 2 : 1;
  if (arguments != wanted) {
    throw arithmetic_.source().error(term.position,
                                     fmt::format("{} with {} arguments", term.name, arguments),
                                     std::to_string(wanted));
  }
  Point point;
  point.wants_real = true;
  const auto number = [&](size_t k) {
    return arithmetic_.evaluate(term.operands[arguments + k], context.scope, point).value;
  };
  const double low = number(0), high = number(1), tolerance = number(2);
  const Cases a = evaluate(term.operands[0], context);
  const Cases b = evaluate(term.operands[wanted - 1], context);
  return limited(term, located(term, [&] {
                   if (wanted == 1) {
                     return mapped(a, [&](const Value& x) {
                       return approximation(term.name, x, low, high, tolerance);
                     });
                   }
                   return combined(a, b, [&](const Value& x, const Value& y) {
                     return approximate_product(x, y, low, high, tolerance);
                   });
                 }));
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
  if (name == "min") return folded(term, arguments(term, context), minimum);
  if (name == "max") return folded(term, arguments(term, context), maximum);
  if (name == "sum") return folded(term, arguments(term, context), add);
  throw arithmetic_.source().error(
      term.position, fmt::format("{} of a word", name.substr(0, 60)),
      "min, max, sum, abs, relu or choose: what ReLUs compute exactly",
      find_curved_function(name) != nullptr || name == "product"
          ? fmt::format("{}(...) on [LOW, HIGH] within 0.001 approaches it", name)
      : is_function(name) ? ""
                          : "a procedure is called on a line of its own");
}

Cases LocalTerms::folded(const Term& term, std::vector<Cases> values,
                         Value (*f)(const Value&, const Value&)) {
  return joined_as_tree(std::move(values), [&](const Cases& a, const Cases& b) {
    return limited(term, combined(a, b, f));
  });
}

Cases LocalTerms::of_conditional(const Term& term, const Term& condition, const Term& then,
                                 const Term& otherwise, const Context& context) {
  const Scope& scope = context.scope;
  if (arithmetic_.reads_words(condition, scope)) {
    const Cases bit = evaluate(condition, Context{scope, context.active, false});
    const Cases a = evaluate(then, context), b = evaluate(otherwise, context);
    return limited(term, located(term, [&] { return selected(bit, a, b); }));
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
