#include "posattn/programs/language/term_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace posattn::language {
namespace {

using Kind = Term::Kind;

constexpr std::array<std::string_view, 32> keywords = {
    "program", "task",    "processors", "word",      "let",  "table",   "edges", "for",
    "in",      "if",      "elif",       "else",      "from", "receive", "sum",   "of",
    "over",    "where",   "output",     "procedure", "and",  "or",      "not",   "xor",
    "input",   "nothing", "real",       "int",       "bit",  "n",       "i",     "pi"};
constexpr std::array<std::string_view, 14> functions = {
    "min",   "max",  "abs", "relu", "choose", "floor_log2", "ceil_log2",
    "power", "sqrt", "sin", "cos",  "exp",    "rows",       "sum"};

// The terms, moved: an initialiser list would copy them.
template <class... Terms>
std::vector<Term> list_of(Terms... terms) {
  std::vector<Term> list;
  (list.push_back(std::move(terms)), ...);
  return list;
}

bool contains(const auto& list, std::string_view name) {
  return std::ranges::find(list, name) != list.end();
}

}  // namespace

bool is_function(std::string_view name) { return contains(functions, name); }

TermParser::Nesting::Nesting(TermParser& parser) : parser_(parser) {
  if (++parser_.depth_ > parser_.limits_.term_depth) {
    --parser_.depth_;
    throw parser_.source_.error(parser_.peek().position, "brackets or blocks too deep",
                                fmt::format("at most {} levels", parser_.limits_.term_depth));
  }
}

bool TermParser::take_if(std::string_view text) {
  if (!peek().is(text)) return false;
  take();
  return true;
}

void TermParser::expect(std::string_view text, std::string_view why) {
  if (take_if(text)) return;
  throw source_.error(peek().position, describe(peek()), fmt::format("'{}' {}", text, why));
}

std::string TermParser::new_name(std::string_view what) {
  const Token& token = peek();
  if (token.kind != Token::Kind::name) {
    throw source_.error(token.position, describe(token), std::string(what));
  }
  if (contains(keywords, token.text) || is_function(token.text)) {
    throw source_.error(token.position,
                        fmt::format("'{}' has a meaning of its own in the language", token.text),
                        std::string(what), "choose another name");
  }
  return take().text;
}

std::string TermParser::hyphenated_name(std::string_view what) {
  std::string name;
  while (true) {
    const Token& token = peek();
    const bool joins = name.empty() || token.touches_previous;
    const bool part = token.kind == Token::Kind::name ||
                      (!name.empty() && token.kind == Token::Kind::number && token.whole);
    if (!part || !joins) {
      throw source_.error(token.position, describe(token), std::string(what));
    }
    name += take().text;
    if (!(peek().is("-") && peek().touches_previous)) return name;
    name += take().text;
  }
}

bool TermParser::at_hyphenated_call() const {
  if (peek().kind != Token::Kind::name) return false;
  return peek(1).is("(") || (peek(1).is("-") && peek(1).touches_previous);
}

Term TermParser::node(Kind kind, Position position, std::vector<Term> operands, std::string name) {
  Term term;
  term.kind = kind;
  term.position = position;
  term.name = std::move(name);
  for (const Term& operand : operands) term.depth = std::max(term.depth, operand.depth + 1);
  term.operands = std::move(operands);
  if (term.depth > limits_.term_depth) {
    throw source_.error(position, "a term of too many operators",
                        fmt::format("at most {} in a chain", limits_.term_depth),
                        "give a part of it a name of its own");
  }
  return term;
}

Term TermParser::term() {
  const Nesting nesting(*this);
  Term then = disjunction();
  if (!peek().is("if")) return then;
  const Position position = take().position;
  Term condition = disjunction();
  expect("else", "and what holds otherwise");
  Term otherwise = term();
  return node(Kind::conditional, position,
              list_of(std::move(condition), std::move(then), std::move(otherwise)));
}

Term TermParser::joined(Kind kind, Position position, Term a, Term b) {
  return node(kind, position, list_of(std::move(a), std::move(b)));
}

Term TermParser::chain(Term (TermParser::*operand)(), Operators operators) {
  Term left = (this->*operand)();
  for (;;) {
    const auto found =
        std::ranges::find_if(operators, [&](const auto& each) { return peek().is(each.first); });
    if (found == operators.end()) return left;
    const Position position = take().position;
    left = joined(found->second, position, std::move(left), (this->*operand)());
  }
}

Term TermParser::disjunction() {
  return chain(&TermParser::conjunction, {{"or", Kind::logical_or}});
}

Term TermParser::conjunction() {
  return chain(&TermParser::negation, {{"and", Kind::logical_and}});
}

Term TermParser::negation() {
  if (!peek().is("not")) return comparison();
  const Nesting nesting(*this);
  const Position position = take().position;
  return node(Kind::logical_not, position, list_of(negation()));
}

Term TermParser::comparison() {
  Term left = exclusive_or();
  static const std::array<std::pair<std::string_view, Kind>, 6> comparisons = {{
      {"==", Kind::equal},
      {"!=", Kind::unequal},
      {"<", Kind::less},
      {"<=", Kind::less_equal},
      {">", Kind::greater},
      {">=", Kind::greater_equal},
  }};
  for (const auto& [symbol, kind] : comparisons) {
    if (!peek().is(symbol)) continue;
    const Position position = take().position;
    left = joined(kind, position, std::move(left), exclusive_or());
    for (const auto& [again, other] : comparisons) {
      if (peek().is(again)) {
        throw source_.error(peek().position, describe(peek()), "one comparison",
                            "join two with 'and'");
      }
    }
    break;
  }
  return left;
}

Term TermParser::exclusive_or() { return chain(&TermParser::sum, {{"xor", Kind::exclusive_or}}); }

Term TermParser::sum() {
  return chain(&TermParser::product, {{"+", Kind::add}, {"-", Kind::subtract}});
}

Term TermParser::product() {
  return chain(&TermParser::factor,
               {{"*", Kind::multiply}, {"/", Kind::divide}, {"%", Kind::modulo}});
}

Term TermParser::factor() {
  if (!peek().is("-")) return primary();
  const Nesting nesting(*this);
  const Position position = take().position;
  return node(Kind::negate, position, list_of(factor()));
}

std::vector<Term> TermParser::terms_until(std::string_view close) {
  std::vector<Term> terms;
  if (take_if(close)) return terms;
  do {
    terms.push_back(term());
  } while (take_if(","));
  expect(close, "or another term");
  return terms;
}

Term TermParser::primary() {
  const Token token = take();
  if (token.kind == Token::Kind::number) {
    Term term = node(Kind::number, token.position, {});
    term.number = token.number;
    term.whole = token.whole;
    return term;
  }
  if (token.is("(")) {
    Term inner = term();
    expect(")", "to close the bracket");
    return inner;
  }
  if (token.is("nothing")) return node(Kind::nothing, token.position, {});
  if ((token.is("sum") || token.is("min") || token.is("max")) && peek().is("of")) {
    throw source_.error(
        token.position, fmt::format("'{} of' inside a term", token.text),
        "a number, a name or a bracket",
        fmt::format("receive y = {} of x over j has a line of its own", token.text));
  }
  if (token.kind == Token::Kind::name) {
    if (peek().is("(")) {
      take();
      std::vector<Term> operands = terms_until(")");
      if (!peek().is("on")) {
        return node(Kind::call, token.position, std::move(operands), token.text);
      }
      take();
      expect("[", "and the range, as [-1, 1]");
      operands.push_back(term());
      expect(",", "and the end of the range");
      operands.push_back(term());
      expect("]", "to end the range");
      expect("within", "and how far off it may be, as within 0.001");
      operands.push_back(primary());
      return node(Kind::approximation, token.position, std::move(operands), token.text);
    }
    const bool variable = token.text == "n" || token.text == "i" || token.text == "pi";
    if (!contains(keywords, token.text) || variable) {
      if (!take_if("[")) return node(Kind::name, token.position, {}, token.text);
      return node(Kind::element, token.position, terms_until("]"), token.text);
    }
  }
  const bool doubled = token.touches_previous && (token.is("*") || token.is("/"));
  throw source_.error(token.position, describe(token), "a number, a name or a bracket",
                      !doubled        ? ""
                      : token.is("*") ? "a power is power(a, b)"
                                      : "/ of whole numbers rounds down");
}

}  // namespace posattn::language
