// A program's text as tokens. Indentation decides blocks: more of it is an `indent`, less a
// `dedent` for every block that ends. Inside brackets lines go on.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "posattn/programs/language/source.h"

namespace posattn::language {

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

}  // namespace posattn::language
