// A build without a library of regular expressions: GPT-2's text needs Unicode's classes of
// letters.
#include "posattn/text/word_pattern.h"

#include "posattn/base/error.h"

namespace posattn {

struct WordPattern::Compiled {};

WordPattern::WordPattern() {
  throw Error(ExitCode::configuration, "GPT-2's tokeniser in a build without PCRE2",
              "a build that has it");
}
WordPattern::~WordPattern() = default;
WordPattern::WordPattern(WordPattern&&) noexcept = default;

std::vector<std::string_view> WordPattern::split(std::string_view text) const { return {text}; }

}  // namespace posattn
