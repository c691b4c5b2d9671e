#include "posattn/programs/language/elaborator.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "posattn/programs/language/local_terms.h"
#include "posattn/programs/language/routes.h"
#include "posattn/programs/language/series.h"
#include "posattn/programs/language/tables.h"
#include "posattn/tasks/task.h"

namespace posattn::language {
namespace {

// In terms.
constexpr int64_t statement_work = 8, round_work = 500;

class Elaborator {
  // Runs what the builder may refuse.
  template <class F>
  auto located(Position position, const F& f) {
    try {
      return f();
    } catch (const Error& error) {
      throw source_.error(position, error);
    }
  }

 public:
  Elaborator(const SyntaxTree& tree, const std::string& name, int length, const Source& source,
             const Limits& limits)
      : tree_(tree),
        source_(source),
        limits_(limits),
        arithmetic_(source, limits, length),
        builder_(name, length, processors(length)),
        state_(builder_),
        terms_(arithmetic_, state_),
        active_(static_cast<size_t>(builder_.processors()), true) {
    check_task(length);
  }

  StaticProgram run() {
    Scope scope;
    run(tree_.statements, scope);
    if (outputs_.empty()) {
      throw source_.error({}, "a program without output", "a line: output WORD");
    }
    StaticProgram program = located({}, [&] {
      state_.flush();
      return builder_.finish(outputs_);
    });
    check_columns(program);
    return program;
  }

 private:
  int processors(int length) {
    if (length < 1 || length > limits_.processors) {
      throw Error(ExitCode::configuration, fmt::format("n = {}", length),
                  fmt::format("a length from 1 to {}", limits_.processors));
    }
    if (!tree_.processors) return length;
    const int64_t count = arithmetic_.size(*tree_.processors, {});
    if (count >= 1 && count <= limits_.processors) return static_cast<int>(count);
    throw source_.error(tree_.processors->position, fmt::format("{} processors", count),
                        fmt::format("from 1 to {}", limits_.processors));
  }

  void check_task(int length) {
    if (tree_.task.empty()) return;
    try {
      const TaskShape shape = find_task(tree_.task).shape(length);
      if (shape.real_nodes != builder_.processors()) {
        throw Error(ExitCode::configuration,
                    fmt::format("task {} with {} processors", tree_.task, builder_.processors()),
                    fmt::format("{} processors for n = {}", shape.real_nodes, length),
                    "say how many with a line: processors 2 * n");
      }
    } catch (const Error& error) {
      throw source_.error(tree_.task_position, error);
    }
    builder_.set_task(tree_.task);
  }

  void check_columns(const StaticProgram& program) const {
    if (program.task.empty()) return;
    const TaskShape shape = find_task(program.task).shape(program.length);
    if (shape.data_columns == static_cast<int>(program.inputs.size()) &&
        shape.output_columns == static_cast<int>(program.outputs.size())) {
      return;
    }
    throw source_.error(
        tree_.task_position,
        fmt::format("task {} with {} inputs and {} outputs", program.task, program.inputs.size(),
                    program.outputs.size()),
        fmt::format("{} and {} of every processor", shape.data_columns, shape.output_columns));
  }

  void run(const Block& block, Scope& scope) {
    for (const Statement& statement : block) {
      if (!outputs_.empty() && !std::holds_alternative<OutputStatement>(statement.is)) {
        throw source_.error(statement.position, "a statement after the output",
                            "outputs as the last lines");
      }
      arithmetic_.spend(statement_work, statement.position);
      std::visit([&](const auto& is) { execute(is, statement.position, scope); }, statement.is);
    }
  }

  // In branches by position or data all processors do the same, so that nobody can hear less.
  void only_outside_branches(const char* what, Position position, const char* hint) const {
    if (branches_ == 0) return;
    throw source_.error(
        position, fmt::format("{} inside an 'if' that depends on the processor or on data", what),
        "assignments", hint);
  }

  void check_new(const Scope& scope, const std::string& name, Position position) const {
    if (!scope.contains(name)) return;
    throw source_.error(position, fmt::format("'{}' has a meaning already", name.substr(0, 60)),
                        "a new name");
  }

  void execute(const WordStatement& word, Position position, Scope& scope) {
    only_outside_branches("a declaration", position, "declare the word before the 'if'");
    const int64_t size = word.size ? arithmetic_.size(*word.size, scope) : 1;
    if (size < 1 || size > limits_.array) {
      throw source_.error(position, fmt::format("an array of {} words", size),
                          fmt::format("from 1 to {}", limits_.array));
    }
    const WordType type = type_of(word, scope);
    // A declaration that runs again, in a loop or a procedure, means the same words.
    const auto key = std::tuple{&word, size, type.low, type.high};
    const auto known = declared_.find(key);
    if (known == declared_.end() || scope.contains(word.name)) {
      const auto here = scope.find(word.name);
      const auto* group = here == scope.end() ? nullptr : std::get_if<WordGroup>(&here->second);
      const bool again = group != nullptr && group->declared.line == position.line &&
                         group->declared.column == position.column;
      if (!again) check_new(scope, word.name, position);
    }
    if (known != declared_.end()) {
      scope.insert_or_assign(word.name, known->second);
      for (const Variable variable : known->second.words) {
        assign(variable,
               word.initial ? value(*word.initial, type, scope) : everywhere(constant_value(0)),
               position);
      }
      return;
    }
    WordGroup group{{}, word.size.has_value(), position};
    for (int64_t k = 0; k < size; ++k) {
      const std::string name =
          prefix_ + (word.size ? fmt::format("{}[{}]", word.name, k) : word.name);
      group.words.push_back(declare(word, name, type, position, scope));
    }
    declared_.emplace(key, group);
    scope.insert_or_assign(word.name, std::move(group));
  }

  WordType type_of(const WordStatement& word, const Scope& scope) {
    if (word.type == WordStatement::Type::real) return WordType::real();
    if (word.type == WordStatement::Type::bit) return WordType::bit();
    const int64_t low = arithmetic_.size(*word.low, scope);
    const int64_t high = arithmetic_.size(*word.high, scope);
    if (low > high) {
      throw source_.error(word.low->position, fmt::format("int[{}..{}]", low, high),
                          "the smaller number first");
    }
    return WordType::integer(low, high);
  }

  Variable declare(const WordStatement& word, const std::string& name, const WordType& type,
                   Position position, const Scope& scope) {
    if (word.is_input) {
      return located(position, [&] { return builder_.input(name, type); });
    }
    if (!word.initial || arithmetic_.reads_words(*word.initial, scope)) {
      const Variable variable = located(position, [&] { return builder_.word(name, type); });
      if (word.initial) assign(variable, value(*word.initial, type, scope), position);
      return variable;
    }
    std::vector<double> initial;
    for (const Number& number : terms_.numbers(*word.initial, scope, active_, type.is_real())) {
      initial.push_back(number.value);
    }
    const bool zeros = std::ranges::all_of(initial, [](double x) { return x == 0; });
    return located(word.initial->position, [&] {
      return builder_.word(name, type, zeros ? std::vector<double>() : std::move(initial));
    });
  }

  Cases value(const Term& term, const WordType& type, const Scope& scope) {
    return terms_.evaluate(term, scope, active_, type.is_real());
  }

  void assign(Variable variable, Cases cases, Position position) {
    located(position, [&] {
      for (const Piece& piece : cases) builder_.check_fits(variable, piece.value);
    });
    builder_.note_line(position.line);
    state_.write(variable, std::move(cases));
  }

  void execute(const AssignStatement& statement, Position position, Scope& scope) {
    if (statement.target.kind != Term::Kind::name && statement.target.kind != Term::Kind::element) {
      throw source_.error(statement.target.position, "an assignment to a term",
                          "a word, or an element of an array of words");
    }
    if (!scope.contains(statement.target.name)) {
      throw source_.error(position,
                          fmt::format("unknown word '{}'", statement.target.name.substr(0, 60)),
                          "a word declared in a line above",
                          fmt::format("word {} : real = ...", statement.target.name.substr(0, 60)));
    }
    const Variable variable = terms_.word(statement.target, scope);
    assign(variable, value(statement.value, builder_.type_of(variable), scope), position);
  }

  void execute(const LetStatement& let, Position position, Scope& scope) {
    const auto found = scope.find(let.name);
    if (found != scope.end()) {
      const bool number = std::holds_alternative<Number>(found->second) ||
                          std::holds_alternative<Numbers>(found->second);
      const bool loops = std::ranges::find(loop_variables_, let.name) != loop_variables_.end();
      if (!number || loops) check_new(scope, let.name, position);
    }
    if (arithmetic_.reads_words(let.value, scope)) {
      throw source_.error(let.value.position, "a word in 'let'",
                          "what is known before the program runs: n, i, loop variables",
                          fmt::format("word {} : real = ...", let.name));
    }
    scope.insert_or_assign(let.name, static_value(let.value, scope));
  }

  Meaning static_value(const Term& term, const Scope& scope) {
    if (!arithmetic_.depends_on_position(term, scope)) {
      return arithmetic_.evaluate(term, scope, {});
    }
    return terms_.numbers(term, scope, active_, false);
  }

  void execute(const TableStatement& statement, Position position, Scope& scope) {
    const auto found = scope.find(statement.name);
    if (found != scope.end() && !std::holds_alternative<NumberTable>(found->second)) {
      check_new(scope, statement.name, position);
    }
    scope.insert_or_assign(statement.name, make_table(statement, position, scope, arithmetic_));
  }

  void execute(const ForStatement& loop, Position position, Scope& scope) {
    check_new(scope, loop.variable, position);
    std::vector<int64_t> first;
    for (const Term& term : loop.terms) first.push_back(arithmetic_.size(term, scope));
    Series series(loop, std::move(first), arithmetic_.size(loop.end, scope), position, source_);
    loop_variables_.push_back(loop.variable);
    while (const std::optional<int64_t> step = series.next()) {
      arithmetic_.spend(statement_work, position);
      scope.insert_or_assign(loop.variable, Number::whole(static_cast<double>(*step)));
      run(loop.body, scope);
    }
    loop_variables_.pop_back();
    scope.erase(loop.variable);
  }

  void execute(const IfStatement& statement, Position position, Scope& scope) {
    const Term& condition = statement.condition;
    if (arithmetic_.reads_words(condition, scope)) {
      spend_branch(position, scope);
      run_by_data(statement, position, scope);
    } else if (arithmetic_.depends_on_position(condition, scope)) {
      spend_branch(position, scope);
      run_by_position(statement, position, scope);
    } else {
      run(arithmetic_.truth(condition, scope, {}) ? statement.then : statement.otherwise, scope);
    }
  }

  // A branch begins with copies of all that is known by position.
  void spend_branch(Position position, const Scope& scope) {
    const size_t copies = scope.size() + state_.changes().size();
    arithmetic_.spend(static_cast<int64_t>(copies * active_.size()), position);
  }

  // What the words have changed to after a branch, which leaves no names behind.
  LocalState::Changes branch(const Block& block, const Scope& scope, std::vector<bool> active) {
    const LocalState::Changes before = state_.changes();
    Scope inner = scope;
    std::swap(active_, active);
    ++branches_;
    if (std::ranges::find(active_, true) != active_.end()) run(block, inner);
    --branches_;
    std::swap(active_, active);
    return state_.exchange(before);
  }

  // For each word that one of two branches has changed, what `join` makes of both.
  template <class Join>
  void join_branches(const LocalState::Changes& then, const LocalState::Changes& otherwise,
                     const Join& join) {
    LocalState::Changes result;
    const auto after = [&](const LocalState::Changes& changes, int word) {
      const auto found = changes.find(word);
      return found == changes.end() ? state_.read({word}) : found->second;
    };
    for (const LocalState::Changes* changes : {&then, &otherwise}) {
      for (const auto& [word, cases] : *changes) {
        if (result.contains(word)) continue;
        result[word] = join(after(then, word), after(otherwise, word));
      }
    }
    state_.exchange(std::move(result));
  }

  Cases limited(Cases cases, Position position) const {
    if (static_cast<int>(cases.size()) <= limits_.pieces) return cases;
    throw source_.error(position, fmt::format("a word with {} cases by position", cases.size()),
                        fmt::format("at most {}", limits_.pieces),
                        "a receive between the statements ends a round");
  }

  void run_by_position(const IfStatement& statement, Position position, Scope& scope) {
    const std::vector<bool> here = terms_.where(statement.condition, scope, active_);
    std::vector<bool> there = active_;
    for (size_t i = 0; i < there.size(); ++i) there[i] = there[i] && !here[i];
    const LocalState::Changes then = branch(statement.then, scope, here);
    const LocalState::Changes otherwise = branch(statement.otherwise, scope, there);
    join_branches(then, otherwise, [&](const Cases& a, const Cases& b) {
      return limited(divided(here, a, b), position);
    });
  }

  void run_by_data(const IfStatement& statement, Position position, Scope& scope) {
    const Cases bit = terms_.evaluate(statement.condition, scope, active_, false);
    const LocalState::Changes then = branch(statement.then, scope, active_);
    const LocalState::Changes otherwise = branch(statement.otherwise, scope, active_);
    join_branches(then, otherwise, [&](const Cases& a, const Cases& b) {
      return limited(located(position, [&] { return selected(bit, a, b); }), position);
    });
  }

  // A source that changed in this round ends it: others read what it was when a round began.
  void receive(const std::string& target, const WordGroup& source, const Route& route,
               Position position, Scope& scope) {
    only_outside_branches("a receive", position,
                          "every processor receives; write from PLACE if CONDITION else nothing");
    const auto found = scope.find(target);
    const auto* existing = found == scope.end() ? nullptr : std::get_if<WordGroup>(&found->second);
    if (found != scope.end() && existing == nullptr) check_new(scope, target, position);
    const bool declared = existing != nullptr && existing->declared.line > 0;
    if (declared && existing->words.size() != source.words.size()) {
      throw source_.error(position, fmt::format("{} words for '{}'", source.words.size(), target),
                          std::to_string(existing->words.size()));
    }
    std::vector<size_t> order;  // what has changed first: the others join its round
    for (const bool changed : {true, false}) {
      for (size_t k = 0; k < source.words.size(); ++k) {
        if (!state_.unchanged(source.words[k]) == changed) order.push_back(k);
      }
    }
    // A receive may begin a round, with all that a round holds.
    arithmetic_.spend(static_cast<int64_t>(order.size()) * (round_work + builder_.processors()) +
                          builder_.word_count(),
                      position);
    if (!state_.unchanged(source.words[order[0]])) located(position, [&] { state_.flush(); });
    WordGroup group{std::vector<Variable>(order.size()), source.is_array, {0, 0}};
    for (const size_t k : order) {
      std::string name = prefix_ + (source.is_array ? fmt::format("{}[{}]", target, k) : target);
      if (declared) name += " (received)";
      group.words[k] = located(position, [&] {
        const Variable from = state_.unchanged(source.words[k]).value_or(source.words[k]);
        return builder_.receive(name, from, route, position.line);
      });
      state_.forget(group.words[k]);
    }
    if (!declared) {
      scope.insert_or_assign(target, std::move(group));
      return;
    }
    const WordGroup targets = *existing;
    for (size_t k = 0; k < order.size(); ++k) {
      assign(targets.words[k], everywhere(builder_[group.words[k]]), position);
    }
  }

  void execute(const ReceiveStatement& statement, Position position, Scope& scope) {
    const WordGroup source = terms_.words(statement.source, scope);
    const Route route = route_of(statement, builder_.processors(), scope, arithmetic_);
    receive(statement.target, source, route, position, scope);
  }

  void execute(const SumStatement& statement, Position position, Scope& scope) {
    if (!arithmetic_.reads_words(statement.source, scope)) {
      throw source_.error(statement.source.position, "a sum without a word",
                          "sum of WEIGHT * WORD over j, the word last");
    }
    const WordGroup source = terms_.words(statement.source, scope);
    check_new(scope, statement.variable, position);
    const Route route = route_of(statement, builder_.processors(), position, scope, arithmetic_);
    receive(statement.target, source, route, position, scope);
  }

  void execute(const CallStatement& call, Position position, Scope& scope) {
    const auto procedure = std::ranges::find(tree_.procedures, call.procedure, &Procedure::name);
    if (procedure == tree_.procedures.end()) {
      std::vector<std::string> known;
      for (const Procedure& other : tree_.procedures) known.push_back(other.name);
      const std::string near = nearest_name(call.procedure, known);
      throw source_.error(position,
                          fmt::format("unknown procedure '{}'", call.procedure.substr(0, 60)),
                          "one that the program defines: procedure NAME(...):",
                          near.empty() ? "" : fmt::format("did you mean '{}'?", near));
    }
    if (call.arguments.size() != procedure->parameters.size()) {
      throw source_.error(
          position, fmt::format("{} with {} arguments", call.procedure, call.arguments.size()),
          std::to_string(procedure->parameters.size()));
    }
    if (std::ranges::find(calls_, call.procedure) != calls_.end() ||
        static_cast<int>(calls_.size()) >= limits_.call_depth) {
      throw source_.error(position,
                          fmt::format("{} calls itself, or calls nest too deep", call.procedure),
                          "a loop");
    }
    Scope inner;
    for (size_t k = 0; k < call.arguments.size(); ++k) {
      inner.insert_or_assign(procedure->parameters[k], argument(call.arguments[k], scope));
    }
    calls_.push_back(call.procedure);
    const std::string outer = std::exchange(prefix_, call.procedure + ".");
    std::vector<std::string> loops;
    std::swap(loops, loop_variables_);
    run(procedure->body, inner);
    std::swap(loops, loop_variables_);
    prefix_ = outer;
    calls_.pop_back();
  }

  Meaning argument(const Term& term, const Scope& scope) {
    if (arithmetic_.reads_words(term, scope)) {
      if (term.kind == Term::Kind::name || term.kind == Term::Kind::element) {
        WordGroup group = terms_.words(term, scope);
        group.declared = {1, 0};  // the caller's: receiving into it keeps its type
        return group;
      }
      throw source_.error(term.position, "a value as argument",
                          "a word, an array, a table, or numbers known before the program runs",
                          "put the value into a word first");
    }
    if (term.kind == Term::Kind::name) {
      const auto found = scope.find(term.name);
      if (found != scope.end() && std::holds_alternative<NumberTable>(found->second)) {
        const auto& table = std::get<NumberTable>(found->second);
        arithmetic_.spend(static_cast<int64_t>(table.numbers.size()), term.position);
        return table;
      }
    }
    return static_value(term, scope);
  }

  void execute(const OutputStatement& statement, Position position, Scope& scope) {
    only_outside_branches("an output", position, "");
    if (!calls_.empty() || !loop_variables_.empty()) {
      throw source_.error(position, "an output inside a loop or procedure", "it as the last line");
    }
    for (const Variable word : terms_.words(statement.word, scope).words) outputs_.push_back(word);
  }

  const SyntaxTree& tree_;
  const Source& source_;
  const Limits& limits_;
  Arithmetic arithmetic_;
  ProgramBuilder builder_;
  LocalState state_;
  LocalTerms terms_;
  std::vector<bool> active_;  // the processors that a branch is for
  int branches_ = 0;
  std::map<std::tuple<const WordStatement*, int64_t, int64_t, int64_t>, WordGroup> declared_;
  std::vector<std::string> loop_variables_, calls_;
  std::string prefix_;  // of names inside a procedure
  std::vector<Variable> outputs_;
};

}  // namespace

StaticProgram elaborate(const SyntaxTree& tree, const std::string& name, int length,
                        const Source& source, const Limits& limits) {
  return Elaborator(tree, name, length, source, limits).run();
}

}  // namespace posattn::language
