#include "posattn/text/word_pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <stdexcept>

#include "posattn/text/tokeniser.h"

namespace posattn {
namespace {

// Unicode's White_Space, spelled out: \s of PCRE2 has one character more (U+180E).
#define POSATTN_SPACES \
  R"(\t-\r \x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})"

// GPT-2's pattern. The last but one leaves the last space of a run to the word behind it.
constexpr std::string_view pattern =
    "'s|'t|'re|'ve|'m|'ll|'d"
    "| ?\\p{L}+| ?\\p{N}+| ?[^" POSATTN_SPACES
    "\\p{L}\\p{N}]+"
    "|[" POSATTN_SPACES "]+(?![^" POSATTN_SPACES
    "])"
    "|[" POSATTN_SPACES "]+";
#undef POSATTN_SPACES

}  // namespace

struct WordPattern::Compiled {
  pcre2_code* code = nullptr;
  ~Compiled() { pcre2_code_free(code); }
};

WordPattern::WordPattern() {
  auto compiled = std::make_unique<Compiled>();
  int error = 0;
  PCRE2_SIZE at = 0;
  compiled->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                 PCRE2_UTF, &error, &at, nullptr);
  if (compiled->code == nullptr) throw std::logic_error("the pattern of words does not compile");
  // Some systems forbid machine code made at run time; there the interpreter runs the pattern.
  pcre2_jit_compile(compiled->code, PCRE2_JIT_COMPLETE);
  compiled_ = std::move(compiled);
}

WordPattern::~WordPattern() = default;
WordPattern::WordPattern(WordPattern&&) noexcept = default;

std::vector<std::string_view> WordPattern::split(std::string_view text) const {
  check_utf8(text, "text");
  const auto free_match = [](pcre2_match_data* match) { pcre2_match_data_free(match); };
  const std::unique_ptr<pcre2_match_data, decltype(free_match)> match(
      pcre2_match_data_create_from_pattern(compiled_->code, nullptr), free_match);
  if (!match) throw std::bad_alloc();
  std::vector<std::string_view> pieces;
  for (size_t at = 0; at < text.size();) {
    const int found =
        pcre2_match(compiled_->code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at,
                    PCRE2_ANCHORED | PCRE2_NO_UTF_CHECK, match.get(), nullptr);
    if (found < 0) throw std::runtime_error("PCRE2 error " + std::to_string(found));
    const size_t end = pcre2_get_ovector_pointer(match.get())[1];
    pieces.push_back(text.substr(at, end - at));
    at = end;
  }
  return pieces;
}

}  // namespace posattn
