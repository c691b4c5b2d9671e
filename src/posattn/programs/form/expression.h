// Local functions of a static program: what a processor computes from its own words and from what
// it received. Values are immutable and may be shared.
//
// Types decide what is exact in a network of ReLUs. On reals: +, -, constant factors, min, max,
// abs, relu (continuous, piecewise linear). Comparisons take integers, where [a >= b] has a gap of
// one to rise in; selection takes a bit.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace posattn {

struct FunctionTable;

// What a value may be. A bit is an integer of 0..1.
struct WordType {
  enum class Kind { real, integer, bit };
  Kind kind = Kind::real;
  int64_t low = 0, high = 0;  // of an integer or bit, inclusive

  static WordType real() { return {}; }
  static WordType integer(int64_t low, int64_t high) { return {Kind::integer, low, high}; }
  static WordType bit() { return {Kind::bit, 0, 1}; }

  bool is_real() const { return kind == Kind::real; }
  bool operator==(const WordType&) const = default;
};
std::string to_string(const WordType& type);  // "real", "int[0..9]", "bit"
// The smallest type that holds both.
WordType hull(const WordType& a, const WordType& b);
// The type with zero, which a processor receives where it reads from no other.
WordType with_zero(const WordType& type);

// What is computed, its operands left out. What each kind means is one row of operation.cc.
struct Operator {
  enum class Kind {
    word,      // own word `index` at the start of the round
    received,  // receive `index` of the round
    constant,  // the same number for all real processors
    add,
    scale,  // factor x operand
    minimum,
    maximum,
    absolute,
    relu,
    at_least,  // the bit [a >= b], a and b integers
    select,    // bit ? a : b, operands (bit, a, b), and perhaps 1 - bit
    exchange,  // operands (x, p, q): max(x, p) where q is x itself, min(x, p) where q is p
    curve,     // a curved function of the operand, which the network has as a table
  };

  Kind kind = Kind::constant;
  int index = 0;
  double number = 0;                                     // of a constant; the factor of scale
  std::shared_ptr<const FunctionTable> table = nullptr;  // of a curve

  // Whether it is a word or a receipt: what all else is made of.
  bool reads() const { return kind == Kind::word || kind == Kind::received; }
  auto operator<=>(const Operator&) const = default;
};

struct Expression : Operator {
  std::vector<std::shared_ptr<const Expression>> operands;
  WordType type;
  int depth = 0;  // of operations inside each other
};
using Value = std::shared_ptr<const Expression>;

// These functions throw Error(configuration), with the reason, where the result cannot be exact.
// Any operation that does not read; constants are computed, and what amounts to less becomes less.
Value applied(const Operator& what, std::vector<Value> operands);
Value word_value(int index, const WordType& type);
Value received_value(int index, const WordType& type);
Value constant_value(double number);  // an integer if it is a whole number below 2^53
Value add(const Value& a, const Value& b);
Value subtract(const Value& a, const Value& b);
Value scale(double factor, const Value& a);
Value minimum(const Value& a, const Value& b);
Value maximum(const Value& a, const Value& b);
Value absolute(const Value& a);
Value relu(const Value& a);
Value at_least(const Value& a, const Value& b);
Value equal(const Value& a, const Value& b);  // the bit [a = b] of integers
Value negation(const Value& bit);
// The same value, known to be of this narrower type.
Value with_type(const Value& a, const WordType& type);
Value select(const Value& condition, const Value& a, const Value& b);
// Selects where 1 - condition is at hand as a word: then reals are selected one layer earlier.
Value select(const Value& condition, const Value& a, const Value& b, const Value& complement);
Value exchange(const Value& x, const Value& p, const Value& q);

// What the network only approaches: the function itself for the interpreter, a table for the
// network, within `tolerance` where `low` <= a <= `high`; a value outside is refused when the
// program runs. Functions: see function_table.h.
Value approximation(std::string_view function, const Value& a, double low, double high,
                    double tolerance);
// a b by quarter squares, ((a + b) / 2)^2 - ((a - b) / 2)^2, for a and b from low to high.
Value approximate_product(const Value& a, const Value& b, double low, double high,
                          double tolerance);

// Whether the value is zero wherever all words and receipts are.
bool is_zero_at_zero(const Expression& expression);

}  // namespace posattn
