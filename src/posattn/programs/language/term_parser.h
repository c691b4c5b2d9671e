// The tokens of a program one after the other, and the terms they spell. From loose to tight:
//   A if C else B, or, and, not, comparison, xor, + -, * / %, unary -
#pragma once

#include <initializer_list>

#include "posattn/programs/language/source.h"
#include "posattn/programs/language/syntax.h"

namespace posattn::language {

// A program's text as tokens. Indentation decides blocks: more of it is an `indent`, less a
// `dedent` for every block that ends. Inside brackets lines go on.

struct Token {
  enum class Kind { name, number, symbol, newline, indent, dedent, end };
  Kind kind = Kind::end;
  std::string text;
  double number = 0;
  bool whole = false;  // of a number: written without point and exponent
  Position position;
  bool touches_previous = false;  // no space between
  size_t begin = 0, end = 0;      // in the text

  bool is(std::string_view symbol_or_name) const {
    return (kind == Kind::symbol || kind == Kind::name) && text == symbol_or_name;
  }
};
std::string describe(const Token& token);  // "'below'", "the end of the line"

std::vector<Token> tokenize(std::string_view text, const Source& source, const Limits& limits);

class TermParser {
 public:
  TermParser(std::vector<Token> tokens, const Source& source, const Limits& limits)
      : tokens_(std::move(tokens)), source_(source), limits_(limits) {}

  const Token& peek(size_t ahead = 0) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
  }
  Token take() { return at_ + 1 < tokens_.size() ? tokens_[at_++] : tokens_.back(); }
  bool take_if(std::string_view text);
  void expect(std::string_view text, std::string_view why);
  // A new name: no keyword, function or n, i, pi.
  std::string new_name(std::string_view what);
  // Names of programs, tasks and procedures may have hyphens: scan-min.
  std::string hyphenated_name(std::string_view what);
  bool at_hyphenated_call() const;

  Term term();
  Term joined(Term::Kind kind, Position position, Term a, Term b);
  std::vector<Term> terms_until(std::string_view close);

  // Where the next token begins, and where the last one ended, in the text.
  size_t begin() const { return peek().begin; }
  size_t end() const { return at_ == 0 ? 0 : tokens_[at_ - 1].end; }

  const Source& source() const { return source_; }

  // Brackets and blocks inside each other.
  class Nesting {
   public:
    explicit Nesting(TermParser& parser);
    ~Nesting() { --parser_.depth_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    TermParser& parser_;
  };

 private:
  // Operands joined from left to right by any of the operators.
  using Operators = std::initializer_list<std::pair<std::string_view, Term::Kind>>;
  Term chain(Term (TermParser::*operand)(), Operators operators);

  Term disjunction();
  Term conjunction();
  Term negation();
  Term comparison();
  Term exclusive_or();
  Term sum();
  Term product();
  Term factor();
  Term primary();
  Term node(Term::Kind kind, Position position, std::vector<Term> operands, std::string name = {});

  std::vector<Token> tokens_;
  const Source& source_;
  const Limits& limits_;
  size_t at_ = 0;
  int depth_ = 0;
};

bool is_function(std::string_view name);

}  // namespace posattn::language
