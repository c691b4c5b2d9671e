// Terms that read words, as values of the builder.
#pragma once

#include "posattn/programs/form/expression.h"
#include "posattn/programs/language/arithmetic.h"
#include "posattn/programs/language/local_state.h"

namespace posattn::language {

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

}  // namespace posattn::language
