#include "posattn/programs/form/expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "posattn/base/error.h"
#include "posattn/programs/form/operation.h"

namespace posattn {
namespace {

constexpr double whole_limit = 9007199254740992.0;  // 2^53

// Bounds beyond this are not worth computing with: such a program is refused when it is compiled.
constexpr int64_t bound_limit = int64_t{1} << 60;

WordType integer_type(double low, double high) {
  const auto clamped = [](double x) {
    return static_cast<int64_t>(
        std::clamp(x, -static_cast<double>(bound_limit), static_cast<double>(bound_limit)));
  };
  return WordType::integer(clamped(low), clamped(high));
}

bool is_constant(const Value& a) { return a->kind == Expression::Kind::constant; }

Error inexact(std::string what, std::string expected, std::string hint = {}) {
  return Error(ExitCode::configuration, std::move(what), std::move(expected), std::move(hint));
}

// Expressions are walked, and freed, recursively.
constexpr int deepest = 2048;

Value make(Expression::Kind kind, std::vector<Value> operands, WordType type, double number = 0,
           int index = 0) {
  int depth = 0;
  for (const Value& operand : operands) depth = std::max(depth, operand->depth + 1);
  if (depth > deepest) {
    throw inexact("a local function of too many operations inside each other",
                  fmt::format("at most {} between two receives", deepest));
  }
  return std::make_shared<const Expression>(
      Expression{kind, index, number, std::move(operands), type, depth});
}

double low(const Value& a) { return static_cast<double>(a->type.low); }
double high(const Value& a) { return static_cast<double>(a->type.high); }

bool is_bit(const Value& a) { return a->type.kind == WordType::Kind::bit; }

WordType joined(const Value& a, const Value& b, double from, double to) {
  if (a->type.is_real() || b->type.is_real()) return WordType::real();
  return integer_type(from, to);
}
// The type of one of two values, which is a bit if both are.
WordType one_of(const Value& a, const Value& b, double from, double to) {
  WordType type = joined(a, b, from, to);
  if (is_bit(a) && is_bit(b)) type.kind = WordType::Kind::bit;
  return type;
}

}  // namespace

std::string to_string(const WordType& type) {
  switch (type.kind) {
    case WordType::Kind::real:
      return "real";
    case WordType::Kind::bit:
      return "bit";
    case WordType::Kind::integer:
      break;
  }
  return fmt::format("int[{}..{}]", type.low, type.high);
}

WordType hull(const WordType& a, const WordType& b) {
  if (a == b) return a;
  if (a.is_real() || b.is_real()) return WordType::real();
  const bool bits = a.kind == WordType::Kind::bit && b.kind == WordType::Kind::bit;
  return {bits ? WordType::Kind::bit : WordType::Kind::integer, std::min(a.low, b.low),
          std::max(a.high, b.high)};
}

Value word_value(int index, const WordType& type) {
  return make(Expression::Kind::word, {}, type, 0, index);
}

Value received_value(int index, const WordType& type) {
  return make(Expression::Kind::received, {}, type, 0, index);
}

Value constant_value(double number) {
  WordType type;
  if (number == std::floor(number) && std::abs(number) < whole_limit) {
    type = number == 0 || number == 1 ? WordType::bit() : integer_type(number, number);
    type.low = type.high = static_cast<int64_t>(number);
  }
  return make(Expression::Kind::constant, {}, type, number);
}

Value add(const Value& a, const Value& b) {
  if (is_constant(a) && is_constant(b)) return constant_value(a->number + b->number);
  if (is_constant(a) && a->number == 0) return b;
  if (is_constant(b) && b->number == 0) return a;
  return make(Expression::Kind::add, {a, b}, joined(a, b, low(a) + low(b), high(a) + high(b)));
}

Value subtract(const Value& a, const Value& b) { return add(a, scale(-1, b)); }

Value scale(double factor, const Value& a) {
  if (is_constant(a)) return constant_value(factor * a->number);
  if (factor == 1) return a;
  if (factor == 0) return constant_value(0);
  if (a->kind == Expression::Kind::scale) return scale(factor * a->number, a->operands[0]);
  WordType type = WordType::real();
  if (!a->type.is_real() && factor == std::floor(factor)) {
    type = integer_type(std::min(factor * low(a), factor * high(a)),
                        std::max(factor * low(a), factor * high(a)));
  }
  return make(Expression::Kind::scale, {a}, type, factor);
}

Value minimum(const Value& a, const Value& b) {
  if (is_constant(a) && is_constant(b)) return constant_value(std::min(a->number, b->number));
  return make(Expression::Kind::minimum, {a, b},
              one_of(a, b, std::min(low(a), low(b)), std::min(high(a), high(b))));
}

Value maximum(const Value& a, const Value& b) {
  if (is_constant(a) && is_constant(b)) return constant_value(std::max(a->number, b->number));
  return make(Expression::Kind::maximum, {a, b},
              one_of(a, b, std::max(low(a), low(b)), std::max(high(a), high(b))));
}

Value absolute(const Value& a) {
  if (is_constant(a)) return constant_value(std::abs(a->number));
  const bool crosses = a->type.low <= 0 && a->type.high >= 0;
  const double least = crosses ? 0 : std::min(std::abs(low(a)), std::abs(high(a)));
  return make(Expression::Kind::absolute, {a},
              joined(a, a, least, std::max(std::abs(low(a)), std::abs(high(a)))));
}

Value relu(const Value& a) {
  if (is_constant(a)) return constant_value(std::max(0.0, a->number));
  return make(Expression::Kind::relu, {a},
              joined(a, a, std::max(0.0, low(a)), std::max(0.0, high(a))));
}

Value at_least(const Value& a, const Value& b) {
  if (a->type.is_real() || b->type.is_real()) {
    throw inexact("a comparison of real values",
                  "integers: the bit must rise from 0 to 1 between two values, and between reals "
                  "there is no gap",
                  "min, max and abs of reals are exact; declare int[lo..hi] for whole numbers");
  }
  if (low(a) >= high(b)) return constant_value(1);
  if (high(a) < low(b)) return constant_value(0);
  return make(Expression::Kind::at_least, {a, b}, WordType::bit());
}

Value equal(const Value& a, const Value& b) {
  // One of the two holds always: their sum is 2 where both do, else 1.
  return with_type(add(add(at_least(a, b), at_least(b, a)), constant_value(-1)), WordType::bit());
}

Value negation(const Value& bit) {
  if (!is_bit(bit)) {
    throw inexact(fmt::format("'not' of a value of type {}", to_string(bit->type)),
                  "a bit, as a comparison of integers gives");
  }
  return at_least(constant_value(0), bit);
}

Value with_type(const Value& a, const WordType& type) {
  if (is_constant(a)) return a;
  auto typed = std::make_shared<Expression>(*a);
  typed->type = type;
  return typed;
}

Value select(const Value& condition, const Value& a, const Value& b) {
  if (condition->type.kind != WordType::Kind::bit) {
    throw inexact(fmt::format("a selection by a value of type {}", to_string(condition->type)),
                  "a bit, as a comparison of integers gives");
  }
  if (is_constant(condition)) return condition->number == 1 ? a : b;
  return make(Expression::Kind::select, {condition, a, b}, hull(a->type, b->type));
}

Value exchange(const Value& x, const Value& p, const Value& q) {
  return make(Expression::Kind::exchange, {x, p, q}, hull(x->type, p->type));
}

bool is_zero_at_zero(const Expression& expression) {
  std::map<const Expression*, double> known;
  const auto at_zero = [&known](const auto& self, const Expression& e) -> double {
    const auto [place, added] = known.try_emplace(&e, 0);
    if (!added) return place->second;
    const auto operand = [&](int k) { return self(self, *e.operands[k]); };
    const bool read = e.kind == Expression::Kind::word || e.kind == Expression::Kind::received;
    const double result = read ? 0 : operation_result<double>(e.kind, e.number, operand);
    return known[&e] = result;
  };
  return at_zero(at_zero, expression) == 0;
}

}  // namespace posattn
