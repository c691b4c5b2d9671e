// A piece of a formula in words.
#pragma once

#include <string>

namespace posattn {

struct Phrase {
  // How tightly the outermost operation binds.
  enum Binding { sum = 1, product = 2, closed = 3 };

  std::string text;
  Binding binding = closed;

  // As an operand of something that binds this tightly.
  std::string inside(Binding least) const { return binding < least ? "(" + text + ")" : text; }
};

}  // namespace posattn
