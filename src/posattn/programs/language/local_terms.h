// Terms that read words, as values of the builder.
#pragma once

#include <cstddef>
#include <optional>

#include "posattn/programs/form/builder.h"
#include "posattn/programs/form/expression.h"
#include "posattn/programs/language/arithmetic.h"

namespace posattn::language {

// What the words hold while a round's local statements are elaborated: for each word that has
// changed a value, or several by position. The builder is told when the round ends, so that
// statements by position, however many, become one choice between values.

// Values by position, which cover every processor once. A single one needs no `where`.
using Cases = std::vector<Piece>;

Cases everywhere(Value value);
// f of values on the processors where they meet.
Cases mapped(const Cases& a, const std::function<Value(const Value&)>& f);
Cases combined(const Cases& a, const Cases& b,
               const std::function<Value(const Value&, const Value&)>& f);
// `a` where the bit is 1, `b` where it is 0.
Cases selected(const Cases& bit, const Cases& a, const Cases& b);
// `a` where it holds, `b` elsewhere.
Cases divided(const std::vector<bool>& where, const Cases& a, const Cases& b);

class LocalState {
 public:
  explicit LocalState(ProgramBuilder& builder) : builder_(builder) {}

  Cases read(Variable variable) const;
  void write(Variable variable, Cases cases) { changed_[variable.word] = std::move(cases); }
  void forget(Variable variable) { changed_.erase(variable.word); }
  // The word whose value, as the round began, this one holds, and in which the builder still finds
  // it: others can read it in this round. None where the value is new, or must be flushed first.
  std::optional<Variable> unchanged(Variable variable) const;
  void flush();

  // What has changed, by word; branches begin and end with it.
  using Changes = std::map<int, Cases>;
  const Changes& changes() const { return changed_; }
  Changes exchange(Changes changes) { return std::exchange(changed_, std::move(changes)); }

  ProgramBuilder& builder() { return builder_; }
  // A word that holds these numbers.
  Variable constants(const WordType& type, const std::vector<double>& by_processor);

 private:
  ProgramBuilder& builder_;
  Changes changed_;
  std::map<std::pair<int, std::vector<double>>, Variable> constants_;
};

class LocalTerms {
 public:
  LocalTerms(Arithmetic& arithmetic, LocalState& state) : arithmetic_(arithmetic), state_(state) {}

  // The value on the processors of `active`; elsewhere it does not matter. `wants_real`: see Point.
  Cases evaluate(const Term& term, const Scope& scope, const std::vector<bool>& active,
                 bool wants_real);

  // The number on each active processor; elsewhere that of the first.
  Numbers numbers(const Term& term, const Scope& scope, const std::vector<bool>& active,
                  bool wants_real);
  // Where a condition by position holds; false on processors that are not active.
  std::vector<bool> where(const Term& term, const Scope& scope, const std::vector<bool>& active);

  // The words that a name or name[index] stands for.
  WordGroup words(const Term& term, const Scope& scope);
  Variable word(const Term& term, const Scope& scope);

 private:
  struct Context {
    const Scope& scope;
    const std::vector<bool>& active;
    bool wants_real;
  };
  Cases evaluate(const Term& term, const Context& context);
  Cases constant(const Term& term, const Context& context);
  Cases of_call(const Term& term, const Context& context);
  Cases of_conditional(const Term& term, const Term& condition, const Term& then,
                       const Term& otherwise, const Context& context);
  Cases of_approximation(const Term& term, const Context& context);
  Cases of_product(const Term& term, const Context& context);
  Cases of_quotient(const Term& term, const Context& context);
  Cases of_modulo(const Term& term, const Context& context);
  Cases of_exclusive_or(const Term& term, const Context& context);
  void spend_staircases(const Term& term, size_t cases);
  Number factor(const Term& term, const Context& context);
  Number static_divisor(const Term& term, const Context& context);
  std::vector<Cases> arguments(const Term& term, const Context& context);
  Cases folded(const Term& term, std::vector<Cases> values, Value (*f)(const Value&, const Value&));
  Cases pairs(const Term& term, const Term& left, const Term& right, const Context& context,
              Value (*f)(const Value&, const Value&));
  Cases each(const Term& term, const Term& operand, const Context& context,
             Value (*f)(const Value&));
  Cases limited(const Term& term, Cases cases) const;
  // Runs what may be refused as not exact.
  template <class F>
  Cases located(const Term& term, const F& f) const {
    return arithmetic_.source().located(term.position, f);
  }

  Arithmetic& arithmetic_;
  LocalState& state_;
};

// Whole numbers divided and joined digit by digit: sums of the bits [x >= k]. Every step is two
// ReLUs of one layer, so the range of x decides the price.

// Throw Error(configuration) for reals, for a divisor below 1 and for too many steps.
Value quotient(const Value& x, double divisor);  // rounded down
Value remainder(const Value& x, double divisor);
Value exclusive_or(const Value& a,
                   const Value& b);  // of bits, or of integers that are never below 0

// A bit times a value; Error(configuration) where neither is a bit.
Value product(const Value& a, const Value& b);

// Many values joined two by two: the depth is that of the logarithm.

// `values` has at least one.
template <class T, class F>
T joined_as_tree(std::vector<T> values, const F& join) {
  while (values.size() > 1) {
    std::vector<T> next;
    for (size_t k = 0; k + 1 < values.size(); k += 2) {
      next.push_back(join(values[k], values[k + 1]));
    }
    if (values.size() % 2 == 1) next.push_back(std::move(values.back()));
    values = std::move(next);
  }
  return std::move(values[0]);
}

}  // namespace posattn::language
