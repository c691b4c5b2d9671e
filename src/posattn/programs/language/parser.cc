#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "posattn/programs/language/syntax.h"
#include "posattn/programs/language/term_parser.h"

namespace posattn::language {
namespace {

const std::vector<std::string>& statement_words() {
  static const std::vector<std::string> words = {"word",    "let",    "table",   "edges",
                                                 "for",     "if",     "receive", "send",
                                                 "permute", "output", "assert",  "procedure"};
  return words;
}

// Spaces and line breaks as one space.
std::string on_one_line(std::string_view text) {
  std::string line;
  for (const char c : text) {
    const bool space = c == ' ' || c == '\n' || c == '\r' || c == '\t';
    if (!space) {
      line += c;
    } else if (!line.empty() && line.back() != ' ') {
      line += ' ';
    }
  }
  return line;
}

class Parser {
 public:
  Parser(std::string_view text, const Source& source, const Limits& limits)
      : text_(text), reader_(tokenize(text, source, limits), source, limits) {}

  SyntaxTree run() {
    while (reader_.peek().kind != Token::Kind::end) {
      if (!header()) tree_.statements.push_back(statement());
    }
    return std::move(tree_);
  }

 private:
  Error unexpected(std::string expected, std::string hint = {}) const {
    return reader_.source().error(reader_.peek().position, describe(reader_.peek()),
                                  std::move(expected), std::move(hint));
  }

  void end_of_line() {
    if (reader_.peek().kind != Token::Kind::newline) throw unexpected("the end of the line");
    reader_.take();
  }

  // What stands at the top of a file, and procedures.
  bool header() {
    const Token token = reader_.peek();
    // Words of the first versions may be called so.
    const bool parameter = token.is("parameter") && reader_.peek(1).kind == Token::Kind::name;
    const bool known =
        token.is("program") || token.is("task") || token.is("processors") || parameter;
    if (known && !tree_.statements.empty()) {
      throw unexpected("this line before the first statement");
    }
    if (reader_.take_if("program")) {
      once(token, !tree_.name.empty());
      tree_.name = reader_.hyphenated_name("the program's name");
    } else if (reader_.take_if("task")) {
      once(token, !tree_.task.empty());
      tree_.task_position = reader_.peek().position;
      tree_.task = reader_.hyphenated_name("the name of a task");
    } else if (reader_.take_if("processors")) {
      once(token, tree_.processors.has_value());
      tree_.processors = reader_.term();
    } else if (parameter) {
      reader_.take();
      parameter_line();
    } else if (reader_.take_if("procedure")) {
      procedure(token.position);
      return true;
    } else {
      return false;
    }
    end_of_line();
    return true;
  }

  void once(const Token& token, bool before) const {
    if (!before) return;
    throw reader_.source().error(token.position, fmt::format("a second line '{}'", token.text),
                                 "one");
  }

  void parameter_line() {
    ParameterLine line;
    const Position position = reader_.peek().position;
    line.name = reader_.new_name("the parameter's name");
    for (const ParameterLine& other : tree_.parameters) {
      if (other.name != line.name) continue;
      throw reader_.source().error(position, fmt::format("a second parameter '{}'", line.name),
                                   "one");
    }
    if (reader_.take_if("in")) {
      line.low = reader_.term();
      reader_.expect("..", "and the largest value");
      line.high = reader_.term();
    }
    reader_.expect("=", "and the value where nothing is set");
    line.value = reader_.term();
    tree_.parameters.push_back(std::move(line));
  }

  void procedure(Position position) {
    Procedure result;
    result.position = position;
    result.name = reader_.hyphenated_name("the procedure's name");
    if (is_function(result.name)) {
      throw reader_.source().error(position, fmt::format("a procedure '{}'", result.name),
                                   "a name that is no function's");
    }
    for (const Procedure& other : tree_.procedures) {
      if (other.name == result.name) {
        throw reader_.source().error(
            position, fmt::format("a second procedure '{}'", result.name),
            fmt::format("one (the first is in line {})", other.position.line));
      }
    }
    reader_.expect("(", "and the parameters");
    if (!reader_.take_if(")")) {
      do {
        const Position at = reader_.peek().position;
        result.parameters.push_back(reader_.new_name("a parameter's name"));
        if (std::ranges::count(result.parameters, result.parameters.back()) > 1) {
          throw reader_.source().error(
              at, fmt::format("a second parameter '{}'", result.parameters.back()), "one");
        }
      } while (reader_.take_if(","));
      reader_.expect(")", "after the parameters");
    }
    result.body = block();
    tree_.procedures.push_back(std::move(result));
  }

  Block block() {
    if (reader_.peek().is("=")) throw unexpected("':' and a block", "== compares");
    reader_.expect(":", "and a block, indented on the lines below");
    end_of_line();
    if (reader_.peek().kind != Token::Kind::indent) {
      throw unexpected("a block, indented by spaces");
    }
    reader_.take();
    const TermParser::Nesting nesting(reader_);
    Block result;
    while (reader_.peek().kind != Token::Kind::dedent) result.push_back(statement());
    reader_.take();
    return result;
  }

  Statement statement() {
    const Position position = reader_.peek().position;
    if (reader_.peek().kind == Token::Kind::indent) {
      throw unexpected("a statement indented as the one before",
                       "only the line after a ':' begins a block");
    }
    if (reader_.take_if("for")) return {position, for_statement()};
    if (reader_.take_if("if")) return {position, if_statement()};
    Statement result = simple(position);
    end_of_line();
    return result;
  }

  Statement simple(Position position) {
    if (reader_.take_if("word")) return {position, word_statement()};
    if (reader_.take_if("receive")) return receive_statement(position);
    // Words of the first versions may be called so.
    const bool sends = reader_.peek().is("send") || reader_.peek().is("permute");
    if (sends && reader_.peek(1).kind == Token::Kind::name) return {position, send_statement()};
    if (reader_.take_if("let")) {
      LetStatement let;
      let.name = reader_.new_name("a name");
      reader_.expect("=", "and what the name stands for");
      let.value = reader_.term();
      return {position, std::move(let)};
    }
    if (reader_.peek().is("table") || reader_.peek().is("edges")) {
      return {position, table_statement()};
    }
    if (reader_.take_if("output")) return {position, OutputStatement{reader_.term()}};
    if (at_assert()) return {position, assert_statement()};
    if (reader_.at_hyphenated_call()) {
      CallStatement call;
      call.procedure = reader_.hyphenated_name("a procedure's name");
      reader_.expect("(", "and the arguments");
      call.arguments = reader_.terms_until(")");
      return {position, std::move(call)};
    }
    if (reader_.peek().kind != Token::Kind::name) {
      throw unexpected(fmt::format("a statement: {}, NAME = ..., NAME(...)",
                                   fmt::join(statement_words(), ", ")));
    }
    AssignStatement assign;
    const Token first = reader_.peek();
    assign.target = reader_.term();
    const Token sign = reader_.peek();
    const bool adds = sign.is("+="), subtracts = sign.is("-=");
    if (!sign.is("=") && !adds && !subtracts) throw no_statement(first, assign.target);
    reader_.take();
    assign.value = reader_.term();
    if (adds || subtracts) {
      assign.value = reader_.joined(adds ? Term::Kind::add : Term::Kind::subtract, sign.position,
                                    assign.target, std::move(assign.value));
    }
    return {position, std::move(assign)};
  }

  // Where a name begins a line and no '=' follows: a word of the language, misspelt, or else.
  Error no_statement(const Token& first, const Term& target) const {
    constexpr size_t shortest = 3;  // of shorter names every short word is near
    const std::string near = target.kind == Term::Kind::name && first.text.size() >= shortest
                                 ? nearest_name(first.text, statement_words())
                                 : "";
    if (near.empty()) {
      return unexpected("'=' and the word's new value",
                        fmt::format("statements begin with {}, or assign to a word",
                                    fmt::join(statement_words(), ", ")));
    }
    return reader_.source().error(first.position, describe(first), "a statement",
                                  fmt::format("did you mean '{}'?", near));
  }

  // Words of the first versions may be called so.
  bool at_assert() const {
    const Token& next = reader_.peek(1);
    const bool assigned = next.is("=") || next.is("[") || next.is("+=") || next.is("-=");
    return reader_.peek().is("assert") && !assigned;
  }

  AssertStatement assert_statement() {
    reader_.take();
    AssertStatement result;
    const size_t begin = reader_.begin();
    result.condition = reader_.term();
    result.text = on_one_line(text_.substr(begin, reader_.end() - begin));
    return result;
  }

  WordStatement word_statement() {
    WordStatement word;
    word.name = reader_.new_name("the word's name");
    if (reader_.take_if("[")) {
      word.size = reader_.term();
      reader_.expect("]", "after the number of words");
    }
    reader_.expect(":", "and the word's type: real, int[low..high] or bit");
    if (reader_.take_if("real")) {
      word.type = WordStatement::Type::real;
    } else if (reader_.take_if("bit")) {
      word.type = WordStatement::Type::bit;
    } else if (reader_.take_if("int")) {
      word.type = WordStatement::Type::integer;
      if (reader_.take_if("[")) {
        word.low = reader_.term();
        reader_.expect("..", "and the largest value");
        word.high = reader_.term();
        reader_.expect("]", "after the range");
      }
    } else {
      throw unexpected("a type: real, int[low..high] or bit");
    }
    if (!reader_.take_if("=")) return word;
    if (reader_.take_if("input")) {
      word.is_input = true;
      if (reader_.peek().kind == Token::Kind::name) word.promise = reader_.take().text;
    } else {
      word.initial = reader_.term();
    }
    return word;
  }

  TableStatement table_statement() {
    TableStatement table;
    table.edges = reader_.take().is("edges");
    table.name = reader_.new_name("the table's name");
    reader_.expect("=", "and the numbers");
    if (table.edges) {
      do {
        reader_.expect("(", "and an edge (u, v, weight)");
        table.rows.push_back(reader_.terms_until(")"));
      } while (reader_.take_if(","));
      return table;
    }
    reader_.expect("[", "and rows [a, b], [c, d], or one row of numbers");
    if (!reader_.peek().is("[")) {
      table.one_row = true;
      table.rows.push_back(reader_.terms_until("]"));
      return table;
    }
    do {
      reader_.expect("[", "and a row of numbers");
      table.rows.push_back(reader_.terms_until("]"));
    } while (reader_.take_if(","));
    reader_.expect("]", "after the rows");
    return table;
  }

  ForStatement for_statement() {
    ForStatement loop;
    loop.variable = reader_.new_name("the loop's variable");
    reader_.expect("in", "and the values");
    loop.terms.push_back(reader_.term());
    if (reader_.take_if("..")) {
      loop.end = reader_.term();
    } else {
      while (reader_.take_if(",")) {
        if (reader_.peek().is("...")) break;
        loop.terms.push_back(reader_.term());
      }
      reader_.expect("...", "as in 'for d in 1, 2, 4, ... below n:' or 'for k in 0 .. n - 1:'");
      if (loop.terms.size() < 2) {
        throw unexpected("at least two values before '...'",
                         "two have a constant difference, three may have a constant ratio");
      }
      loop.bound = bound();
      loop.end = reader_.term();
    }
    loop.body = block();
    return loop;
  }

  ForStatement::Bound bound() {
    if (reader_.take_if("below")) return ForStatement::Bound::below;
    if (reader_.take_if("above")) return ForStatement::Bound::above;
    if (reader_.peek(1).is("to")) {
      if (reader_.take_if("up")) {
        reader_.take();
        return ForStatement::Bound::up_to;
      }
      if (reader_.take_if("down")) {
        reader_.take();
        return ForStatement::Bound::down_to;
      }
    }
    throw unexpected("where the values end: below, up to, above or down to");
  }

  IfStatement if_statement() {
    const TermParser::Nesting nesting(reader_);
    IfStatement result;
    result.condition = reader_.term();
    result.then = block();
    const Position position = reader_.peek().position;
    if (reader_.take_if("elif")) {
      result.otherwise.push_back({position, if_statement()});
    } else if (reader_.take_if("else")) {
      const Position at = reader_.peek().position;
      if (reader_.take_if("if")) {
        result.otherwise.push_back({at, if_statement()});
      } else {
        result.otherwise = block();
      }
    }
    return result;
  }

  Statement receive_statement(Position position) {
    std::string target = reader_.new_name("the name of what is received");
    reader_.expect("=", "and the word that is read");
    if (reader_.take_if("sum")) {
      reader_.expect("of", "and WEIGHT * WORD over j");
      return {position, sum_statement(std::move(target))};
    }
    for (const auto kind : {SumStatement::Kind::minimum, SumStatement::Kind::maximum}) {
      const char* name = kind == SumStatement::Kind::minimum ? "min" : "max";
      if (!reader_.peek().is(name) || !reader_.peek(1).is("of")) continue;
      reader_.take();
      reader_.take();
      return {position, extreme_statement(kind, std::move(target))};
    }
    ReceiveStatement receive;
    receive.target = std::move(target);
    receive.source = reader_.term();
    reader_.expect("from", "and the place: the index of a processor");
    do {
      receive.places.push_back(reader_.term());
    } while (reader_.take_if("else"));
    return {position, std::move(receive)};
  }

  SendStatement send_statement() {
    SendStatement send;
    send.permutation = reader_.take().is("permute");
    send.target = reader_.new_name("the name of what arrives");
    reader_.expect("=", "and the word that is sent");
    send.source = reader_.term();
    reader_.expect("to", "and the destination: a whole number that each processor computes");
    send.destination = reader_.term();
    return send;
  }

  SumStatement sum_statement(std::string target) {
    SumStatement sum;
    sum.target = std::move(target);
    Term product = reader_.term();
    if (product.kind == Term::Kind::multiply) {
      sum.source = std::move(product.operands[1]);
      // Not through an alias: the weight is a part of the product.
      Term weight = std::move(product.operands[0]);
      sum.weight = std::move(weight);
    } else {
      sum.source = std::move(product);
    }
    over_processors(sum);
    return sum;
  }

  SumStatement extreme_statement(SumStatement::Kind kind, std::string target) {
    SumStatement extreme;
    extreme.kind = kind;
    extreme.target = std::move(target);
    extreme.source = reader_.term();
    over_processors(extreme);
    return extreme;
  }

  void over_processors(SumStatement& statement) {
    reader_.expect("over", "and the name of the index that runs over all processors");
    statement.variable = reader_.new_name("the name of the index");
    if (reader_.take_if("where")) statement.condition = reader_.term();
  }

  std::string_view text_;
  TermParser reader_;
  SyntaxTree tree_;
};

}  // namespace

SyntaxTree parse(std::string_view text, const Source& source, const Limits& limits) {
  return Parser(text, source, limits).run();
}

}  // namespace posattn::language
