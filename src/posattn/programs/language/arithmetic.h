// Numbers that are known before the program runs: terms of n, the own index i, loop variables and
// tables, without words.
#pragma once

#include "posattn/programs/language/scope.h"
#include "posattn/programs/language/syntax.h"

namespace posattn::language {

// Where a term is evaluated.
struct Point {
  int processor = -1;  // i; -1 where it must not matter
  const std::string* over = nullptr;
  int j = 0;                // of the index named `over`
  bool wants_real = false;  // whole numbers must then divide without a rest
};

class Arithmetic {
 public:
  Arithmetic(const Source& source, const Limits& limits, int length)
      : source_(source), limits_(limits), length_(length) {}

  const Source& source() const { return source_; }
  const Limits& limits() const { return limits_; }

  // Counts work; Error where it is too much.
  void spend(int64_t work, Position position);

  Number evaluate(const Term& term, const Scope& scope, const Point& point);
  // Of a size: the same for all processors, and whole.
  int64_t size(const Term& term, const Scope& scope);
  bool truth(const Term& term, const Scope& scope, const Point& point);

  // Whether the term reads a word; whether it depends on i.
  bool reads_words(const Term& term, const Scope& scope) const;
  bool depends_on_position(const Term& term, const Scope& scope) const;

  // What a name stands for. Throws for an unknown one.
  const Meaning& meaning(const Term& term, const Scope& scope) const;

 private:
  Number of_name(const Term& term, const Scope& scope, const Point& point) const;
  Number of_element(const Term& term, const Scope& scope, const Point& point);
  Number of_call(const Term& term, const Scope& scope, const Point& point);
  Number of_pair(const Term& term, const Number& a, const Number& b, const Point& point) const;
  Number checked(const Term& term, Number number) const;

  const Source& source_;
  const Limits& limits_;
  int length_;
  int64_t work_ = 0;
};

}  // namespace posattn::language
