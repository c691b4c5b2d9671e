#include "posattn/programs/form/operation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "posattn/base/error.h"
#include "posattn/base/limits.h"
#include "posattn/programs/form/function_table.h"

namespace posattn {
namespace {

using Kind = Operator::Kind;

double low(const WordType& type) { return static_cast<double>(type.low); }
double high(const WordType& type) { return static_cast<double>(type.high); }

// Beyond 2^53 whole numbers are rounded, in the interpreter too: as reals are.
WordType integers(double from, double to) {
  if (!(from > -whole_limit && to < whole_limit)) return WordType::real();
  return WordType::integer(static_cast<int64_t>(from), static_cast<int64_t>(to));
}

bool any_real(const WordType& a, const WordType& b) { return a.is_real() || b.is_real(); }

// One of two values: a bit if both are.
WordType one_of(const WordType& a, const WordType& b, double from, double to) {
  if (any_real(a, b)) return WordType::real();
  WordType type = integers(from, to);
  if (a.kind == WordType::Kind::bit && b.kind == WordType::Kind::bit) type.kind = a.kind;
  return type;
}

// NaN if one of the two is.
double least(double a, double b) { return a < b || std::isnan(a) ? a : b; }
double greatest(double a, double b) { return a > b || std::isnan(a) ? a : b; }

double no_error(const Operator&, const double*, const double*) { return 0; }
double own_error(const Operator&, const double*, const double* e) { return e[0]; }
double larger_error(const Operator&, const double*, const double* e) {
  return std::max(e[0], e[1]);
}

bool is_number(const Value& a, double number) {
  return a->kind == Kind::constant && a->number == number;
}

constexpr Operation word = {.kind = Kind::word};
constexpr Operation receipt = {.kind = Kind::received};

constexpr Operation constant = {
    .kind = Kind::constant,
    .value = [](const Operator& what, const double*) { return what.number; },
    .error = no_error,
    .text = [](const Operator& what, const Phrase*) -> Phrase {
      return {fmt::format("{}", what.number)};
    },
};

constexpr Operation addition = {
    .kind = Kind::add,
    .value = [](const Operator&, const double* x) { return x[0] + x[1]; },
    .type =
        [](const Operator&, const WordType* x) {
          if (any_real(x[0], x[1])) return WordType::real();
          return integers(low(x[0]) + low(x[1]), high(x[0]) + high(x[1]));
        },
    .error = [](const Operator&, const double*, const double* e) { return e[0] + e[1]; },
    .roundings = 1,
    .symmetric = true,
    .shorter =
        [](const Operator&, const std::vector<Value>& x) {
          if (is_number(x[0], 0)) return x[1];
          return is_number(x[1], 0) ? x[0] : nullptr;
        },
    .text = [](const Operator&, const Phrase* x) -> Phrase {
      const std::string second = x[1].inside(Phrase::sum);
      if (second.starts_with('-')) {
        return {x[0].inside(Phrase::sum) + " - " + second.substr(1), Phrase::sum};
      }
      return {x[0].inside(Phrase::sum) + " + " + second, Phrase::sum};
    },
};

constexpr Operation scaling = {
    .kind = Kind::scale,
    .value = [](const Operator& what, const double* x) { return what.number * x[0]; },
    .type =
        [](const Operator& what, const WordType* x) {
          const double factor = what.number;
          if (x[0].is_real() || factor != std::floor(factor)) return WordType::real();
          const auto [from, to] = std::minmax({factor * low(x[0]), factor * high(x[0])});
          return integers(from, to);
        },
    .error = [](const Operator& what, const double*,
                const double* e) { return std::abs(what.number) * e[0]; },
    .roundings = 1,
    .shorter = [](const Operator& what, const std::vector<Value>& x) -> Value {
      if (what.number == 1) return x[0];
      if (what.number == 0) return constant_value(0);
      if (x[0]->kind == Kind::scale) return scale(what.number * x[0]->number, x[0]->operands[0]);
      return nullptr;
    },
    .text = [](const Operator& what, const Phrase* x) -> Phrase {
      const std::string inner = x[0].inside(Phrase::product);
      if (what.number == -1) return {"-" + inner, Phrase::product};
      return {fmt::format("{} {}", what.number, inner), Phrase::product};
    },
};

constexpr Operation smaller = {
    .kind = Kind::minimum,
    .name = "min",
    .value = [](const Operator&, const double* x) { return least(x[0], x[1]); },
    .type =
        [](const Operator&, const WordType* x) {
          return one_of(x[0], x[1], std::min(low(x[0]), low(x[1])),
                        std::min(high(x[0]), high(x[1])));
        },
    .error = larger_error,
    .roundings = 1,
    .symmetric = true,
};

constexpr Operation larger = {
    .kind = Kind::maximum,
    .name = "max",
    .value = [](const Operator&, const double* x) { return greatest(x[0], x[1]); },
    .type =
        [](const Operator&, const WordType* x) {
          return one_of(x[0], x[1], std::max(low(x[0]), low(x[1])),
                        std::max(high(x[0]), high(x[1])));
        },
    .error = larger_error,
    .roundings = 1,
    .symmetric = true,
};

constexpr Operation magnitude = {
    .kind = Kind::absolute,
    .name = "abs",
    .value = [](const Operator&, const double* x) { return std::abs(x[0]); },
    .type =
        [](const Operator&, const WordType* x) {
          if (x[0].is_real()) return WordType::real();
          const auto [least, most] = std::minmax({std::abs(low(x[0])), std::abs(high(x[0]))});
          return integers(x[0].low <= 0 && x[0].high >= 0 ? 0 : least, most);
        },
    .error = own_error,
};

constexpr Operation positive_part = {
    .kind = Kind::relu,
    .name = "relu",
    .value = [](const Operator&, const double* x) { return greatest(0.0, x[0]); },
    .type =
        [](const Operator&, const WordType* x) {
          if (x[0].is_real()) return WordType::real();
          return integers(std::max(0.0, low(x[0])), std::max(0.0, high(x[0])));
        },
    .error = own_error,
};

constexpr Operation comparison = {
    .kind = Kind::at_least,
    .value = [](const Operator&, const double* x) { return x[0] >= x[1] ? 1.0 : 0.0; },
    .type = [](const Operator&, const WordType*) { return WordType::bit(); },
    .error = no_error,
    .shorter = [](const Operator&, const std::vector<Value>& x) -> Value {
      const WordType &a = x[0]->type, &b = x[1]->type;
      if (any_real(a, b)) {
        throw Error(ExitCode::configuration, "a comparison of real values",
                    "integers: the bit must rise from 0 to 1 between two values, and between reals "
                    "there is no gap",
                    "min, max and abs of reals are exact; declare int[lo..hi] for whole numbers");
      }
      if (a.low >= b.high) return constant_value(1);
      return a.high < b.low ? constant_value(0) : nullptr;
    },
    .text = [](const Operator&, const Phrase* x) -> Phrase {
      return {"[" + x[0].text + " >= " + x[1].text + "]"};
    },
};

constexpr Operation selection = {
    .kind = Kind::select,
    .name = "choose",
    .value =
        [](const Operator&, const double* x) {
          // Also what is not chosen must be shut out. If it has no value, the network has one:
          // LocalStep::check.
          const bool beyond = std::abs(x[1]) >= choice_limit || std::abs(x[2]) >= choice_limit;
          if (beyond) return std::nan("");
          return x[0] == 1 ? x[1] : x[2];
        },
    .type = [](const Operator&, const WordType* x) { return hull(x[1], x[2]); },
    .error = [](const Operator&, const double* x,
                const double* e) { return x[0] == 1 ? e[1] : e[2]; },
    .shorter = [](const Operator&, const std::vector<Value>& x) -> Value {
      if (x[0]->type.kind != WordType::Kind::bit) {
        throw Error(ExitCode::configuration,
                    fmt::format("a selection by a value of type {}", to_string(x[0]->type)),
                    "a bit, as a comparison of integers gives");
      }
      if (x[0]->kind != Kind::constant) return nullptr;
      return x[0]->number == 1 ? x[1] : x[2];
    },
    .refusal = [](const Operator&, const double* x) -> Refusal {
      return {fmt::format("a choice between {:.4g} and {:.4g}", x[1], x[2]),
              "numbers below 2^60 = 1.15e18: beyond, the other one cannot be shut out"};
    },
    .text = [](const Operator&, const Phrase* x) -> Phrase {
      return {"choose(" + x[0].text + ", " + x[1].text + ", " + x[2].text + ")"};
    },
};

constexpr Operation exchanging = {
    .kind = Kind::exchange,
    .value =
        [](const Operator&, const double* x) {
          return x[2] == x[0] ? greatest(x[0], x[1]) : least(x[0], x[1]);
        },
    .type = [](const Operator&, const WordType* x) { return hull(x[0], x[1]); },
    .error = larger_error,
    .roundings = 1,
    .text = [](const Operator&, const Phrase* x) -> Phrase {
      return {"min or max(" + x[0].text + ", " + x[1].text + ")"};
    },
};

Refusal outside_table(const Operator& what, const double* x) {
  const FunctionTable& table = *what.table;
  return {fmt::format("{} of {:.6g}", table.function->name, x[0]),
          fmt::format("a number from {} to {}, the range of its table", table.low, table.high)};
}

constexpr Operation curve = {
    .kind = Kind::curve,
    .value =
        [](const Operator& what, const double* x) {
          return what.table->contains(x[0]) ? what.table->function->value(x[0]) : std::nan("");
        },
    .type = [](const Operator&, const WordType*) { return WordType::real(); },
    .error = [](const Operator& what, const double* x,
                const double* e) { return what.table->error_at(x[0], e[0]); },
    .roundings = 2,  // the library's functions are off by less than a unit in the last place
    .shorter = [](const Operator& what, const std::vector<Value>& x) -> Value {
      if (x[0]->kind != Kind::constant || what.table->contains(x[0]->number)) return nullptr;
      const auto [problem, expected] = outside_table(what, &x[0]->number);
      throw Error(ExitCode::configuration, problem, expected);
    },
    .refusal = outside_table,
    .text = [](const Operator& what, const Phrase* x) -> Phrase {
      return {fmt::format("{}({})", what.table->function->name, x[0].text)};
    },
};

// In the order of Operator::Kind.
constexpr const Operation* rows[] = {
    &word,      &receipt,       &constant,   &addition,  &scaling,    &smaller, &larger,
    &magnitude, &positive_part, &comparison, &selection, &exchanging, &curve};

}  // namespace

const Operation& operation(Operator::Kind kind) { return *rows[static_cast<size_t>(kind)]; }

}  // namespace posattn
