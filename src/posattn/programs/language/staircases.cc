#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "posattn/base/error.h"
#include "posattn/programs/language/local_terms.h"

namespace posattn::language {
namespace {

constexpr int64_t most_steps = 4096;

bool is_bit(const Value& value) { return value->type.kind == WordType::Kind::bit; }

int64_t divided(int64_t x, int64_t divisor) { return x / divisor - (x % divisor < 0 ? 1 : 0); }

void check_operands(const Value& x, double divisor, const char* sign) {
  if (x->type.is_real()) {
    throw Error(ExitCode::configuration, fmt::format("{} of a real value", sign),
                "an integer: a rounded quotient jumps, and between two reals there is no gap",
                "declare int[lo..hi] for whole numbers");
  }
  if (divisor >= 1 && divisor == std::floor(divisor) && divisor < 0x1p53) return;
  throw Error(ExitCode::configuration, fmt::format("{} by {}", sign, divisor),
              "a whole number of at least 1");
}

// What can only be 0 or 1 is a bit.
WordType whole_numbers(int64_t low, int64_t high) {
  WordType type = WordType::integer(low, high);
  if (low >= 0 && high <= 1) type.kind = WordType::Kind::bit;
  return type;
}

Value digit(const Value& from, const Value& next) {
  return with_type(subtract(from, scale(2, next)), WordType::bit());
}

// x, x / 2, x / 4, ... down to 0.
std::vector<Value> halves(const Value& x, int digits) {
  std::vector<Value> result = {x};
  for (int k = 1; k <= digits; ++k) result.push_back(quotient(x, std::ldexp(1.0, k)));
  return result;
}

Value unequal_bits(const Value& a, const Value& b) {
  for (const auto& [known, other] : {std::pair{a, b}, std::pair{b, a}}) {
    if (known->kind != Operator::Kind::constant) continue;
    if (known->number == 0) return other;
    return with_type(subtract(known, other), WordType::bit());
  }
  return with_type(absolute(subtract(a, b)), WordType::bit());
}

}  // namespace

Value quotient(const Value& x, double divisor) {
  check_operands(x, divisor, "/");
  if (divisor == 1) return x;
  const auto by = static_cast<int64_t>(divisor);
  const int64_t first = divided(x->type.low, by), last = divided(x->type.high, by);
  if (last - first > most_steps) {
    throw Error(ExitCode::configuration,
                fmt::format("{} values of a quotient of {}", last - first + 1, to_string(x->type)),
                fmt::format("at most {}: each is a step of its own", most_steps + 1),
                "a smaller range, bounded with min and max");
  }
  std::vector<Value> terms = {constant_value(static_cast<double>(first))};
  for (int64_t k = first + 1; k <= last; ++k) {
    terms.push_back(at_least(x, constant_value(static_cast<double>(k * by))));
  }
  return with_type(joined_as_tree(std::move(terms), add), whole_numbers(first, last));
}

Value remainder(const Value& x, double divisor) {
  check_operands(x, divisor, "%");
  const Value whole = quotient(x, divisor);
  const Value rest = subtract(x, scale(divisor, whole));
  const auto by = static_cast<int64_t>(divisor);
  const int64_t first = divided(x->type.low, by), last = divided(x->type.high, by);
  return with_type(rest, first == last
                             ? whole_numbers(x->type.low - first * by, x->type.high - first * by)
                             : whole_numbers(0, by - 1));
}

Value exclusive_or(const Value& a, const Value& b) {
  for (const Value& value : {a, b}) {
    if (!value->type.is_real() && value->type.low >= 0) continue;
    throw Error(ExitCode::configuration,
                fmt::format("'xor' of a value of type {}", to_string(value->type)),
                "bits, or integers that are never below 0");
  }
  if (is_bit(a) && is_bit(b)) return unequal_bits(a, b);
  const auto largest = static_cast<uint64_t>(std::max(a->type.high, b->type.high));
  const int digits = static_cast<int>(std::bit_width(largest));
  const std::vector<Value> of_a = halves(a, digits), of_b = halves(b, digits);
  std::vector<Value> terms = {constant_value(0)};
  for (int k = 0; k < digits; ++k) {
    const Value bit = unequal_bits(digit(of_a[k], of_a[k + 1]), digit(of_b[k], of_b[k + 1]));
    terms.push_back(scale(std::ldexp(1.0, k), bit));
  }
  return with_type(joined_as_tree(std::move(terms), add),
                   WordType::integer(0, (int64_t{1} << digits) - 1));
}

Value product(const Value& a, const Value& b) {
  if (is_bit(a) && is_bit(b)) return minimum(a, b);
  if (is_bit(a)) return select(a, b, constant_value(0));
  if (is_bit(b)) return select(b, a, constant_value(0));
  throw Error(ExitCode::configuration, "a product of two words",
              "one side known before the program runs, or a bit",
              "product(x, y) on [LOW, HIGH] within 0.001 approaches it");
}

}  // namespace posattn::language
