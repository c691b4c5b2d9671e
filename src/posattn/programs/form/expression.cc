#include "posattn/programs/form/expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "posattn/base/error.h"
#include "posattn/base/limits.h"
#include "posattn/programs/form/function_table.h"
#include "posattn/programs/form/operation.h"

namespace posattn {
namespace {

bool is_constant(const Value& a) { return a->kind == Expression::Kind::constant; }

Error inexact(std::string what, std::string expected, std::string hint = {}) {
  return Error(ExitCode::configuration, std::move(what), std::move(expected), std::move(hint));
}

// Expressions are walked, and freed, recursively.
constexpr int deepest = 2048;

Value make(const Operator& what, std::vector<Value> operands, const WordType& type) {
  int depth = 0;
  for (const Value& operand : operands) depth = std::max(depth, operand->depth + 1);
  if (depth > deepest) {
    throw inexact("a local function of too many operations inside each other",
                  fmt::format("at most {} between two receives", deepest));
  }
  return std::make_shared<const Expression>(Expression{what, std::move(operands), type, depth});
}

}  // namespace

std::string to_string(const WordType& type) {
  if (type.is_real()) return "real";
  if (type.kind == WordType::Kind::bit) return "bit";
  return fmt::format("int[{}..{}]", type.low, type.high);
}

WordType hull(const WordType& a, const WordType& b) {
  if (a == b) return a;
  if (a.is_real() || b.is_real()) return WordType::real();
  const bool bits = a.kind == WordType::Kind::bit && b.kind == WordType::Kind::bit;
  return {bits ? WordType::Kind::bit : WordType::Kind::integer, std::min(a.low, b.low),
          std::max(a.high, b.high)};
}

WordType with_zero(const WordType& type) {
  WordType wider = type;
  wider.low = std::min<int64_t>(wider.low, 0);
  wider.high = std::max<int64_t>(wider.high, 0);
  return wider;
}

Value applied(const Operator& what, std::vector<Value> operands) {
  const Operation& row = operation(what.kind);
  if (row.shorter != nullptr) {
    if (Value shorter = row.shorter(what, operands)) return shorter;
  }
  if (operands.empty() || std::ranges::all_of(operands, is_constant)) {
    std::vector<double> numbers;
    for (const Value& operand : operands) numbers.push_back(operand->number);
    return constant_value(row.value(what, numbers.data()));
  }
  std::vector<WordType> types;
  for (const Value& operand : operands) types.push_back(operand->type);
  return make(what, std::move(operands), row.type(what, types.data()));
}

Value word_value(int index, const WordType& type) {
  return make({Expression::Kind::word, index}, {}, type);
}

Value received_value(int index, const WordType& type) {
  return make({Expression::Kind::received, index}, {}, type);
}

Value constant_value(double number) {
  WordType type;
  if (number == std::floor(number) && std::abs(number) < whole_limit) {
    type = number == 0 || number == 1 ? WordType::bit() : WordType::integer(0, 0);
    type.low = type.high = static_cast<int64_t>(number);
  }
  return make({Expression::Kind::constant, 0, number}, {}, type);
}

Value add(const Value& a, const Value& b) { return applied({Expression::Kind::add}, {a, b}); }
Value subtract(const Value& a, const Value& b) { return add(a, scale(-1, b)); }
Value scale(double factor, const Value& a) {
  return applied({Expression::Kind::scale, 0, factor}, {a});
}
Value minimum(const Value& a, const Value& b) {
  return applied({Expression::Kind::minimum}, {a, b});
}
Value maximum(const Value& a, const Value& b) {
  return applied({Expression::Kind::maximum}, {a, b});
}
Value absolute(const Value& a) { return applied({Expression::Kind::absolute}, {a}); }
Value relu(const Value& a) { return applied({Expression::Kind::relu}, {a}); }
Value at_least(const Value& a, const Value& b) {
  return applied({Expression::Kind::at_least}, {a, b});
}
Value select(const Value& condition, const Value& a, const Value& b) {
  return applied({Expression::Kind::select}, {condition, a, b});
}
Value select(const Value& condition, const Value& a, const Value& b, const Value& complement) {
  return applied({Expression::Kind::select}, {condition, a, b, complement});
}
Value exchange(const Value& x, const Value& p, const Value& q) {
  return applied({Expression::Kind::exchange}, {x, p, q});
}

Value equal(const Value& a, const Value& b) {
  // One of the two holds always: their sum is 2 where both do, else 1.
  return with_type(add(add(at_least(a, b), at_least(b, a)), constant_value(-1)), WordType::bit());
}

Value negation(const Value& bit) {
  if (bit->type.kind != WordType::Kind::bit) {
    throw inexact(fmt::format("'not' of a value of type {}", to_string(bit->type)),
                  "a bit, as a comparison of integers gives");
  }
  return with_type(subtract(constant_value(1), bit), WordType::bit());
}

Value with_type(const Value& a, const WordType& type) {
  if (is_constant(a)) return a;
  auto typed = std::make_shared<Expression>(*a);
  typed->type = type;
  return typed;
}

Value approximation(std::string_view function, const Value& a, double low, double high,
                    double tolerance) {
  Operator what{Expression::Kind::curve};
  what.table = function_table(function, low, high, tolerance);
  return applied(what, {a});
}

Value approximate_product(const Value& a, const Value& b, double low, double high,
                          double tolerance) {
  const auto half_square = [&](const Value& twice, double from, double to) {
    return approximation("square", scale(0.5, twice), from, to, tolerance / 2);
  };
  const double half = (high - low) / 2;
  return subtract(half_square(add(a, b), low, high), half_square(subtract(a, b), -half, half));
}

bool is_zero_at_zero(const Expression& expression) {
  std::map<const Expression*, double> known;
  const auto at_zero = [&known](const auto& self, const Expression& e) -> double {
    const auto [place, added] = known.try_emplace(&e, 0);
    if (!added) return place->second;
    if (e.reads()) return 0;
    std::vector<double> operands;
    for (const Value& operand : e.operands) operands.push_back(self(self, *operand));
    const double result = operation(e.kind).value(e, operands.data());
    return known[&e] = result;
  };
  return at_zero(at_zero, expression) == 0;
}

}  // namespace posattn
