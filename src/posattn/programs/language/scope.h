// What names stand for while a program is elaborated.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "posattn/programs/form/builder.h"
#include "posattn/programs/language/source.h"

namespace posattn::language {

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

}  // namespace posattn::language
