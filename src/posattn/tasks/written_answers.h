// Tasks whose samples are texts: a prompt, and the answer that a model writes behind it token by
// token. Such a task is tested by what the model writes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "posattn/text/tokeniser.h"

namespace posattn {

class WrittenAnswers {
 public:
  virtual ~WrittenAnswers() = default;

  virtual const Tokeniser& tokeniser() const = 0;
  // The tokens of a sample that are its prompt.
  virtual std::span<const int32_t> prompt(std::span<const int32_t> sample) const = 0;
  // What stands behind it.
  virtual double answer(std::span<const int32_t> sample) const = 0;
  // The number that a written answer says; nothing where it says none.
  virtual std::optional<double> parse(std::string_view text) const = 0;
  virtual int longest_answer() const = 0;  // in tokens, with the one that ends it
};

}  // namespace posattn
