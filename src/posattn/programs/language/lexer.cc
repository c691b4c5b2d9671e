#include <fmt/format.h>

#include <array>
#include <cmath>

#include "posattn/base/limits.h"
#include "posattn/base/text.h"
#include "posattn/programs/language/term_parser.h"

namespace posattn::language {
namespace {

// What other languages write so.
const char* hint_for(char c) {
  constexpr std::pair<char, const char*> hints[] = {
      {'^', "a power is power(a, b), and bits are joined by xor"},
      {'&', "write and"},
      {'|', "write or"},
      {'!', "write not, and != for unequal"},
      {';', "every statement has a line of its own"}};
  for (const auto& [sign, hint] : hints) {
    if (c == sign) return hint;
  }
  return "any text may follow a #";
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

class Lexer {
 public:
  Lexer(std::string_view text, const Source& source, const Limits& limits)
      : text_(text), source_(source), limits_(limits) {}

  std::vector<Token> run() {
    while (at_ < text_.size()) {
      if (starts_line_ && !indentation()) continue;
      token();
    }
    if (!brackets_.empty()) {
      const Token& open = tokens_[brackets_.back()];
      throw source_.error(open.position, describe(open) + " is not closed",
                          open.is("(") ? "')'" : "']'");
    }
    if (!starts_line_) add(Token::Kind::newline, "");
    for (; blocks_.size() > 1; blocks_.pop_back()) add(Token::Kind::dedent, "");
    add(Token::Kind::end, "");
    return std::move(tokens_);
  }

 private:
  char peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  Position here() const { return {line_, static_cast<int>(at_ - line_start_) + 1}; }

  Token& add(Token::Kind kind, std::string text) {
    Token token;
    token.kind = kind;
    token.text = std::move(text);
    token.position = here();
    token.touches_previous = at_ == last_end_;
    token.begin = at_;
    token.end = at_ + token.text.size();
    tokens_.push_back(std::move(token));
    return tokens_.back();
  }

  void next_line() {
    ++at_;
    ++line_;
    line_start_ = at_;
    starts_line_ = brackets_.empty();
  }

  void skip_comment() {
    while (at_ < text_.size() && text_[at_] != '\n') ++at_;
  }

  // Reads a line's indentation; false for a line that says nothing.
  bool indentation() {
    while (peek() == ' ') ++at_;
    if (peek() == '#') skip_comment();
    if (peek() == '\r' && peek(1) == '\n') ++at_;
    if (at_ == text_.size()) return false;
    if (peek() == '\n') {
      next_line();
      return false;
    }
    if (peek() == '\t') {
      throw source_.error(here(), "a tab in the indentation", "spaces",
                          "indent every block by the same number of spaces");
    }
    const auto depth = static_cast<int>(at_ - line_start_);
    if (depth > blocks_.back()) {
      if (static_cast<int>(blocks_.size()) > limits_.term_depth) {
        throw source_.error(here(), "blocks inside blocks, too deep",
                            fmt::format("at most {} levels", limits_.term_depth));
      }
      blocks_.push_back(depth);
      add(Token::Kind::indent, "");
    }
    while (depth < blocks_.back()) {
      blocks_.pop_back();
      add(Token::Kind::dedent, "");
    }
    if (depth != blocks_.back()) {
      throw source_.error(here(), fmt::format("a line indented by {} spaces", depth),
                          fmt::format("{}, as the block around it", blocks_.back()));
    }
    starts_line_ = false;
    return true;
  }

  void token() {
    const char c = peek();
    if (c == ' ' || c == '\t' || (c == '\r' && peek(1) == '\n')) {
      ++at_;
    } else if (c == '#') {
      skip_comment();
    } else if (c == '\n') {
      if (brackets_.empty()) add(Token::Kind::newline, "");
      next_line();
    } else if (is_letter(c)) {
      size_t size = 1;
      while (is_letter(peek(size)) || is_digit(peek(size))) ++size;
      add(Token::Kind::name, std::string(text_.substr(at_, size)));
      advance(size);
    } else if (is_digit(c) || (c == '.' && is_digit(peek(1)))) {
      number();
    } else {
      symbol();
    }
  }

  void advance(size_t size) {
    at_ += size;
    last_end_ = at_;
  }

  void number() {
    size_t size = 0;
    bool whole = true;
    while (is_digit(peek(size))) ++size;
    if (peek(size) == '.' && peek(size + 1) != '.') {  // 0..9 is a range
      whole = false;
      ++size;
      while (is_digit(peek(size))) ++size;
    }
    if (peek(size) == 'e' || peek(size) == 'E') {
      const size_t sign = peek(size + 1) == '-' || peek(size + 1) == '+' ? 2 : 1;
      if (is_digit(peek(size + sign))) {
        whole = false;
        size += sign;
        while (is_digit(peek(size))) ++size;
      }
    }
    const std::string_view digits = text_.substr(at_, size);
    double value = 0;
    if (!parse_exactly(digits, value) || !std::isfinite(value) || (whole && value > whole_limit)) {
      throw source_.error(here(), fmt::format("the number {}", digits.substr(0, 40)),
                          "a whole number up to 2^53, or a real number a double can hold");
    }
    Token& token = add(Token::Kind::number, std::string(digits));
    token.number = value;
    token.whole = whole;
    advance(size);
  }

  void symbol() {
    static constexpr std::array<std::string_view, 24> symbols = {
        "...", "..", "==", "!=", ">=", "<=", "+=", "-=", "=", "<", ">", "+",
        "-",   "*",  "/",  "%",  "(",  ")",  "[",  "]",  ",", ":", "{", "}"};
    for (const std::string_view known : symbols) {
      if (text_.substr(at_, known.size()) != known) continue;
      if (known == "(" || known == "[") brackets_.push_back(tokens_.size());
      if ((known == ")" || known == "]") && !brackets_.empty()) brackets_.pop_back();
      add(Token::Kind::symbol, std::string(known));
      advance(known.size());
      return;
    }
    const auto byte = static_cast<unsigned char>(peek());
    throw source_.error(here(),
                        byte > 32 && byte < 127 ? fmt::format("the character '{}'", peek())
                                                : fmt::format("the byte {:#04x}", byte),
                        "names, numbers and + - * / % ( ) [ ] , : = == != >= <= > < .. ...",
                        hint_for(peek()));
  }

  std::string_view text_;
  const Source& source_;
  const Limits& limits_;
  size_t at_ = 0, line_start_ = 0, last_end_ = 0;
  int line_ = 1;
  std::vector<size_t> brackets_;  // the open ones, among the tokens
  bool starts_line_ = true;
  std::vector<int> blocks_ = {0};
  std::vector<Token> tokens_;
};

}  // namespace

std::string describe(const Token& token) {
  const Token::Kind kind = token.kind;
  if (kind == Token::Kind::newline) return "the end of the line";
  if (kind == Token::Kind::indent) return "a deeper indentation";
  if (kind == Token::Kind::dedent) return "the end of the block";
  if (kind == Token::Kind::end) return "the end of the program";
  return "'" + token.text.substr(0, 60) + "'";
}

std::vector<Token> tokenize(std::string_view text, const Source& source, const Limits& limits) {
  if (static_cast<int64_t>(text.size()) > limits.text_bytes) {
    throw source.error({}, fmt::format("a program of {} bytes", text.size()),
                       fmt::format("at most {}", limits.text_bytes));
  }
  return Lexer(text, source, limits).run();
}

}  // namespace posattn::language
