// The tree of a program's text.
#pragma once

#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "posattn/programs/language/source.h"

namespace posattn::language {

struct Term {
  enum class Kind {
    number,
    nothing,  // as a place: no processor
    name,
    element,        // name[operands]
    call,           // name(operands)
    approximation,  // name(operands but the last three) on [low, high] within tolerance
    negate,
    add,
    subtract,
    multiply,
    divide,
    modulo,
    exclusive_or,
    equal,
    unequal,
    less,
    less_equal,
    greater,
    greater_equal,
    logical_not,
    logical_and,
    logical_or,
    conditional,  // operands (condition, then, otherwise)
  };
  Kind kind = Kind::number;
  Position position;
  double number = 0;
  bool whole = false;
  std::string name;
  std::vector<Term> operands;
  int depth = 0;
};

struct Statement;
using Block = std::vector<Statement>;

// word NAME[SIZE] : TYPE = INITIAL
struct WordStatement {
  enum class Type { real, integer, bit };
  std::string name;
  std::optional<Term> size;
  Type type = Type::real;
  std::optional<Term> low, high;  // of an integer
  bool is_input = false;
  std::string promise;  // of an input, or ""
  std::optional<Term> initial;
};
struct LetStatement {
  std::string name;
  Term value;
};
// table NAME = [[a, b], [c, d]]  or  edges NAME = (u, v, weight), (u, v, weight)
struct TableStatement {
  std::string name;
  bool edges = false;
  bool one_row = false;  // without inner brackets
  std::vector<std::vector<Term>> rows;
};
// for VARIABLE in TERMS, ... BOUND: or FIRST .. LAST
struct ForStatement {
  enum class Bound { below, up_to, above, down_to, range };
  std::string variable;
  std::vector<Term> terms;  // of a range the first alone
  Bound bound = Bound::range;
  Term end;
  Block body;
};
struct IfStatement {
  Term condition;
  Block then, otherwise;
};
// receive TARGET = SOURCE from PLACE else PLACE ...
struct ReceiveStatement {
  std::string target;
  Term source;
  std::vector<Term> places;
};
// receive TARGET = sum of WEIGHT * SOURCE over VARIABLE where CONDITION; min of, max of SOURCE
struct SumStatement {
  enum class Kind { sum, minimum, maximum };
  Kind kind = Kind::sum;
  std::string target;
  std::optional<Term> weight;
  Term source;
  std::string variable;
  std::optional<Term> condition;
};
// send TARGET = SOURCE to DESTINATION, or with `permute`, where everybody sends and receives
struct SendStatement {
  std::string target;
  Term source;
  Term destination;
  bool permutation = false;
};
struct AssignStatement {
  Term target;
  Term value;
};
struct CallStatement {
  std::string procedure;
  std::vector<Term> arguments;
};
struct OutputStatement {
  Term value;
};
struct AssertStatement {
  Term condition;
  std::string text;  // of the condition, as written
};

struct Statement {
  Position position;
  std::variant<WordStatement, LetStatement, TableStatement, ForStatement, IfStatement,
               ReceiveStatement, SumStatement, SendStatement, AssignStatement, CallStatement,
               OutputStatement, AssertStatement>
      is;
};

struct Procedure {
  Position position;
  std::string name;
  std::vector<std::string> parameters;
  Block body;
};

// parameter NAME in LOW .. HIGH = VALUE
struct ParameterLine {
  std::string name;
  std::optional<Term> low, high;
  Term value;
};

struct SyntaxTree {
  std::string name;  // "" where the text does not say
  std::string task;
  Position task_position;
  std::optional<Term> processors;
  std::vector<ParameterLine> parameters;
  std::vector<Procedure> procedures;
  Block statements;
};

// Tokens to a tree.

SyntaxTree parse(std::string_view text, const Source& source, const Limits& limits);

}  // namespace posattn::language
