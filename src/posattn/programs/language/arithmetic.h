// Numbers that are known before the program runs: terms of n, the own index i, loop variables and
// tables, without words.
#pragma once

#include "posattn/programs/form/builder.h"
#include "posattn/programs/language/language.h"
#include "posattn/programs/language/source.h"
#include "posattn/programs/language/syntax.h"

namespace posattn::language {

// What names stand for while a program is elaborated.

// A number known before the program runs: sizes, places, weights, conditions by position.
struct Number {
  enum class Kind { whole, real, truth };
  Kind kind = Kind::whole;
  double value = 0;  // whole numbers up to 2^53, a truth 0 or 1

  static Number whole(double value) { return {Kind::whole, value}; }
  static Number real(double value) { return {Kind::real, value}; }
  static Number truth(bool value) { return {Kind::truth, value ? 1.0 : 0.0}; }
};

// A number for each processor.
using Numbers = std::vector<Number>;

// One word, or an array of them.
struct WordGroup {
  std::vector<Variable> words;
  bool is_array = false;
  Position declared;
};

struct NumberTable {
  size_t rows = 0, columns = 0;
  bool one_row = false;         // written without inner brackets: one index
  std::vector<double> numbers;  // [rows, columns]
  bool whole = true;
  bool is_edges = false;
  std::map<std::pair<int64_t, int64_t>, double> edges;
};

using Meaning = std::variant<Number, Numbers, WordGroup, NumberTable>;
using Scope = std::map<std::string, Meaning, std::less<>>;

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
  // The value of a size, which is whole and the same for all processors.
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

// The program's parameters in the order of the text, with their defaults or what the user sets. A
// default may use n and the parameters above it. Throws
// Error(usage) for a setting that the program does not have or that its range forbids.
std::vector<ProgramParameter> parameters_of(const SyntaxTree& tree, const Settings& settings,
                                            Arithmetic& arithmetic);

// The parameters as names of the program.
Scope parameter_scope(const std::vector<ProgramParameter>& parameters);

// A table of numbers, or of edges between processors: table NAME = [[a, b], [c, d]] and
// edges NAME = (u, v, weight), ...
NumberTable make_table(const TableStatement& statement, Position position, int processors,
                       const Scope& scope, Arithmetic& arithmetic);

// Who reads from whom, as a statement says it.
Route route_of(const ReceiveStatement& statement, int processors, const Scope& scope,
               Arithmetic& arithmetic);
Route route_of(const SumStatement& statement, int processors, Position position, const Scope& scope,
               Arithmetic& arithmetic);

// A route for each place that a weighted one reads, weights left out: as many as its longest row
// has. A processor with fewer reads its last again, one without any reads nothing.
std::vector<Route> one_by_one(const Route& route, int processors);

}  // namespace posattn::language
