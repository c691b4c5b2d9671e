#include "posattn/programs/language/arithmetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "posattn/base/limits.h"
#include "posattn/programs/language/term_parser.h"

namespace posattn::language {
namespace {

using Kind = Term::Kind;

bool is_whole(const Number& a) { return a.kind == Number::Kind::whole; }
bool is_truth(const Number& a) { return a.kind == Number::Kind::truth; }

std::string text(const Number& number) {
  return is_truth(number) ? (number.value != 0 ? "true" : "false")
                          : fmt::format("{}", number.value);
}

int floor_log2(uint64_t value) { return static_cast<int>(std::bit_width(value)) - 1; }

}  // namespace

void Arithmetic::spend(int64_t work, Position position) {
  work_ += work;
  if (work_ <= limits_.work) return;
  throw source_.error(position, "the program takes too long to elaborate",
                      fmt::format("at most {} evaluated terms", limits_.work),
                      "loops of fewer steps, or a smaller n");
}

const Meaning& Arithmetic::meaning(const Term& term, const Scope& scope) const {
  const auto found = scope.find(term.name);
  if (found != scope.end()) return found->second;
  std::vector<std::string> known = {"n", "i", "pi"};
  for (const auto& [name, meaning] : scope) known.push_back(name);
  const std::string near = nearest_name(term.name, known);
  throw source_.error(term.position, fmt::format("unknown name '{}'", term.name.substr(0, 60)),
                      "n, i, pi, a word, a parameter, a loop's variable, or a name made by let, "
                      "table or edges in a line above",
                      near.empty() ? "" : fmt::format("did you mean '{}'?", near));
}

bool Arithmetic::reads_words(const Term& term, const Scope& scope) const {
  if (term.kind == Kind::name || term.kind == Kind::element) {
    const auto found = scope.find(term.name);
    if (found != scope.end() && std::holds_alternative<WordGroup>(found->second)) return true;
  }
  return std::ranges::any_of(term.operands,
                             [&](const Term& part) { return reads_words(part, scope); });
}

bool Arithmetic::depends_on_position(const Term& term, const Scope& scope) const {
  if (term.kind == Kind::name) {
    if (term.name == "i") return true;
    const auto found = scope.find(term.name);
    if (found != scope.end() && std::holds_alternative<Numbers>(found->second)) return true;
  }
  return std::ranges::any_of(term.operands,
                             [&](const Term& part) { return depends_on_position(part, scope); });
}

int64_t Arithmetic::size(const Term& term, const Scope& scope) {
  const Number number = evaluate(term, scope, {});
  if (is_whole(number)) return static_cast<int64_t>(number.value);
  throw source_.error(term.position, fmt::format("{} as a size", text(number)), "a whole number");
}

bool Arithmetic::truth(const Term& term, const Scope& scope, const Point& point) {
  const Number number = evaluate(term, scope, point);
  if (is_truth(number)) return number.value != 0;
  throw source_.error(term.position, fmt::format("{} as a condition", text(number)),
                      "a comparison, or several with and, or, not");
}

Number Arithmetic::checked(const Term& term, Number number) const {
  if (!std::isfinite(number.value)) {
    throw source_.error(term.position, "a result that is no number",
                        "a real number that a double can hold");
  }
  if (is_whole(number) && std::abs(number.value) > whole_limit) {
    throw source_.error(term.position, "a whole number beyond 2^53", "a smaller one");
  }
  return number;
}

Number Arithmetic::evaluate(const Term& term, const Scope& scope, const Point& point) {
  spend(1, term.position);
  const auto operand = [&](int k) { return evaluate(term.operands[k], scope, point); };
  const auto condition = [&](int k) { return truth(term.operands[k], scope, point); };
  switch (term.kind) {
    case Kind::number:
      return {term.whole ? Number::Kind::whole : Number::Kind::real, term.number};
    case Kind::nothing:
      return Number::whole(-1);
    case Kind::name:
      return of_name(term, scope, point);
    case Kind::element:
      return of_element(term, scope, point);
    case Kind::call:
      return checked(term, of_call(term, scope, point));
    case Kind::approximation:
      throw source_.error(term.position, fmt::format("a table of {} for numbers", term.name),
                          "a word: numbers are known exactly before the program runs");
    case Kind::logical_not:
      return Number::truth(!condition(0));
    case Kind::logical_and:
      return Number::truth(condition(0) && condition(1));
    case Kind::logical_or:
      return Number::truth(condition(0) || condition(1));
    case Kind::conditional:
      return condition(0) ? operand(1) : operand(2);
    case Kind::negate: {
      const Number a = operand(0);
      if (is_truth(a)) break;
      return {a.kind, -a.value};
    }
    default: {
      const Number a = operand(0), b = operand(1);
      if (is_truth(a) || is_truth(b)) break;
      return checked(term, of_pair(term, a, b, point));
    }
  }
  throw source_.error(term.position, "arithmetic with a condition", "numbers",
                      "write (1 if CONDITION else 0)");
}

Number Arithmetic::of_name(const Term& term, const Scope& scope, const Point& point) const {
  if (term.name == "n") return Number::whole(length_);
  if (term.name == "pi") return Number::real(std::numbers::pi);
  if (point.over != nullptr && term.name == *point.over) return Number::whole(point.j);
  const auto needs_processor = [&]() {
    if (point.processor >= 0) return;
    throw source_.error(term.position,
                        fmt::format("'{}' depends on the processor", term.name.substr(0, 60)),
                        "something that is the same for all processors here",
                        "sizes, loops and array indices are decided before the program runs");
  };
  if (term.name == "i") {
    needs_processor();
    return Number::whole(point.processor);
  }
  const Meaning& means = meaning(term, scope);
  if (const auto* number = std::get_if<Number>(&means)) return *number;
  if (const auto* numbers = std::get_if<Numbers>(&means)) {
    needs_processor();
    return (*numbers)[point.processor];
  }
  if (std::holds_alternative<WordGroup>(means)) {
    throw source_.error(term.position, fmt::format("the word '{}'", term.name.substr(0, 60)),
                        "numbers, n, i, loop variables: what is known before the program runs",
                        "who reads from whom cannot depend on data");
  }
  throw source_.error(term.position, fmt::format("the table '{}'", term.name.substr(0, 60)),
                      "an element of it, " + term.name.substr(0, 60) + "[...]");
}

Number Arithmetic::of_element(const Term& term, const Scope& scope, const Point& point) {
  const Meaning& means = meaning(term, scope);
  const auto* table = std::get_if<NumberTable>(&means);
  if (table == nullptr) {
    throw source_.error(
        term.position,
        fmt::format("'{}' has no elements that are numbers", term.name.substr(0, 60)), "a table");
  }
  const size_t wanted = table->one_row ? 1 : 2;
  if (term.operands.size() != wanted) {
    throw source_.error(term.position, fmt::format("{} indices", term.operands.size()),
                        wanted == 1 ? "one, as the table has one row" : "two: row, column");
  }
  int64_t index[2] = {0, 0};
  for (size_t k = 0; k < wanted; ++k) {
    const Number number = evaluate(term.operands[k], scope, point);
    if (!is_whole(number)) {
      throw source_.error(term.operands[k].position, text(number), "a whole number as index");
    }
    index[k + 2 - wanted] = static_cast<int64_t>(number.value);
  }
  if (table->is_edges) {
    const auto edge = table->edges.find({index[0], index[1]});
    return Number::real(edge == table->edges.end() ? 0 : edge->second);
  }
  if (index[0] < 0 || index[0] >= static_cast<int64_t>(table->rows) || index[1] < 0 ||
      index[1] >= static_cast<int64_t>(table->columns)) {
    throw source_.error(term.position, fmt::format("row {}, column {}", index[0], index[1]),
                        fmt::format("an element of {} rows, {} columns, counted from 0",
                                    table->rows, table->columns));
  }
  const double value = table->numbers[index[0] * table->columns + index[1]];
  return {table->whole ? Number::Kind::whole : Number::Kind::real, value};
}

Number Arithmetic::of_call(const Term& term, const Scope& scope, const Point& point) {
  const std::string& name = term.name;
  const auto count = term.operands.size();
  const auto needs = [&](size_t wanted) {
    if (count == wanted) return;
    throw source_.error(term.position, fmt::format("{} with {} arguments", name, count),
                        std::to_string(wanted));
  };
  if (name == "rows") {
    needs(1);
    const Meaning* means =
        term.operands[0].kind == Kind::name ? &meaning(term.operands[0], scope) : nullptr;
    const auto* table = means == nullptr ? nullptr : std::get_if<NumberTable>(means);
    if (table == nullptr) throw source_.error(term.position, "rows of no table", "a table's name");
    return Number::whole(static_cast<double>(table->rows));
  }
  if (name == "choose") {
    needs(3);
    return truth(term.operands[0], scope, point) ? evaluate(term.operands[1], scope, point)
                                                 : evaluate(term.operands[2], scope, point);
  }
  if (!is_function(name)) {
    throw source_.error(term.position, fmt::format("unknown function '{}'", name.substr(0, 60)),
                        "min, max, abs, relu, choose, floor_log2, ceil_log2, power, sqrt, sin, "
                        "cos, exp, rows, sum",
                        "a procedure is called on a line of its own");
  }
  Numbers values;
  for (const Term& argument : term.operands) {
    values.push_back(evaluate(argument, scope, point));
    if (is_truth(values.back())) {
      throw source_.error(argument.position, "a condition as argument", "a number");
    }
  }
  if (name == "min" || name == "max") {
    if (count < 2) needs(2);
    Number result = values[0];
    for (const Number& value : values) {
      const bool better = name == "min" ? value.value < result.value : value.value > result.value;
      const bool real = !is_whole(result) || !is_whole(value);
      if (better) result = value;
      if (real) result.kind = Number::Kind::real;
    }
    return result;
  }
  if (name == "sum") {
    Number result = Number::whole(0);
    for (const Number& value : values) {
      if (!is_whole(value)) result.kind = Number::Kind::real;
      result.value += value.value;
    }
    return result;
  }
  if (name == "power") {
    needs(2);
    const bool whole = is_whole(values[0]) && is_whole(values[1]) && values[1].value >= 0;
    return {whole ? Number::Kind::whole : Number::Kind::real,
            std::pow(values[0].value, values[1].value)};
  }
  needs(1);
  const double a = values[0].value;
  if (name == "abs") return {values[0].kind, std::abs(a)};
  if (name == "relu") return {values[0].kind, std::max(0.0, a)};
  if (name == "sqrt") return Number::real(std::sqrt(a));
  if (name == "sin") return Number::real(std::sin(a));
  if (name == "cos") return Number::real(std::cos(a));
  if (name == "exp") return Number::real(std::exp(a));
  if (!is_whole(values[0]) || a < 1) {
    throw source_.error(term.position, fmt::format("{} of {}", name, a),
                        "a whole number of at least 1");
  }
  const auto size = static_cast<uint64_t>(a);
  if (name == "floor_log2") return Number::whole(floor_log2(size));
  return Number::whole(size == 1 ? 0 : floor_log2(size - 1) + 1);
}

Number Arithmetic::of_pair(const Term& term, const Number& a, const Number& b,
                           const Point& point) const {
  const bool whole = is_whole(a) && is_whole(b);
  const double x = a.value, y = b.value;
  const auto number = [&](double value) {
    return Number{whole ? Number::Kind::whole : Number::Kind::real, value};
  };
  const auto whole_operands = [&](const char* name) {
    if (whole) return;
    throw source_.error(term.position, fmt::format("{} of real numbers", name), "whole numbers");
  };
  switch (term.kind) {
    case Kind::add:
      return number(x + y);
    case Kind::subtract:
      return number(x - y);
    case Kind::multiply:
      return number(x * y);
    case Kind::divide: {
      if (y == 0) throw source_.error(term.position, "a division by zero", "another divisor");
      if (!whole) return number(x / y);
      const auto dividend = static_cast<int64_t>(x), divisor = static_cast<int64_t>(y);
      const bool rounds_up = dividend % divisor != 0 && (dividend < 0) != (divisor < 0);
      const int64_t rounded = dividend / divisor - (rounds_up ? 1 : 0);
      const auto quotient = static_cast<double>(rounded);
      if (point.wants_real && quotient * y != x) {
        throw source_.error(
            term.position,
            fmt::format("{} / {} of whole numbers rounds down to {}", x, y, quotient),
            "a real number on one side where the result is real",
            fmt::format("write {}.0 / ... for the real quotient", x));
      }
      return number(quotient);
    }
    case Kind::modulo: {
      whole_operands("%");
      if (y <= 0) throw source_.error(term.position, "% by zero or less", "a positive divisor");
      const double rest = std::fmod(x, y);
      return number(rest < 0 ? rest + y : rest);
    }
    case Kind::exclusive_or:
      whole_operands("xor");
      if (std::abs(x) == whole_limit || std::abs(y) == whole_limit) break;
      return number(static_cast<double>(static_cast<int64_t>(x) ^ static_cast<int64_t>(y)));
    case Kind::equal:
      return Number::truth(x == y);
    case Kind::unequal:
      return Number::truth(x != y);
    case Kind::less:
      return Number::truth(x < y);
    case Kind::less_equal:
      return Number::truth(x <= y);
    case Kind::greater:
      return Number::truth(x > y);
    case Kind::greater_equal:
      return Number::truth(x >= y);
    default:
      break;
  }
  throw source_.error(term.position, "arithmetic out of range", "numbers below 2^53");
}

}  // namespace posattn::language
