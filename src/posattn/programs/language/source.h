// Where in a program's text something stands, and errors that point there.
#pragma once

#include <cstdint>

#include "posattn/base/error.h"

namespace posattn::language {

struct Position {
  int line = 1, column = 1;
};

class Source {
 public:
  explicit Source(std::string name) : name_(std::move(name)) {}

  // "scan.par:3:7: "
  std::string at(Position position) const {
    return name_ + ":" + std::to_string(position.line) + ":" + std::to_string(position.column) +
           ": ";
  }
  // "scan.par:3:7: what"
  Error error(Position position, const std::string& what, std::string expected = {},
              std::string hint = {}) const {
    return Error(ExitCode::configuration, at(position) + what, std::move(expected),
                 std::move(hint));
  }
  // An error of the builder, which knows no positions.
  Error error(Position position, const Error& inner) const {
    return error(position, inner.problem(), inner.expected(), inner.hint());
  }
  // Calls `f`, which may throw such errors.
  template <class F>
  auto located(Position position, const F& f) const {
    try {
      return f();
    } catch (const Error& inner) {
      throw error(position, inner);
    }
  }
  const std::string& name() const { return name_; }

 private:
  std::string name_;
};

// Limits against text that would take too long: a program that reaches one of them is refused.
struct Limits {
  int64_t text_bytes = 1 << 20;
  int64_t processors = 1 << 20;
  int64_t array = 4096;             // words
  int64_t work = int64_t{1} << 28;  // terms evaluated, a processor's each counting
  int term_depth = 200;             // of brackets and blocks, and of a chain of operators
  int call_depth = 32;
  int pieces = 64;  // cases by position of one value
};

}  // namespace posattn::language
