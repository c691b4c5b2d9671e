// A build without a library of regular expressions: GPT-2's text needs Unicode's classes of
// letters.
#include "posattn/text/word_pattern.h"

#include "posattn/base/error.h"

namespace posattn {

struct WordPattern::Compiled {};

WordPattern::WordPattern() {
  throw Error(ExitCode::configuration, "this build of posattn cannot read GPT-2's tokens",
              "a build with PCRE2",
              "install PCRE2 (Debian's package libpcre2-dev), then configure and build again");
}
WordPattern::~WordPattern() = default;
WordPattern::WordPattern(WordPattern&&) noexcept = default;

std::vector<std::string_view> WordPattern::split(std::string_view text) const { return {text}; }

}  // namespace posattn
