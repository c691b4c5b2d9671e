#include "posattn/programs/language/elaborator.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "posattn/programs/form/definition.h"
#include "posattn/programs/language/arithmetic.h"
#include "posattn/programs/language/syntax.h"
#include "posattn/tasks/task.h"

namespace posattn::language {
namespace {

// The values of a loop: the first ones say the rest. Two have a constant difference (0, 2, ...),
// two quotients a constant ratio (k / 2, k / 4, ...), three whichever they fit (1, 2, 4, ...).
class Series {
 public:
  // Throws where the first values follow no rule, or never reach the end.
  Series(const ForStatement& loop, std::vector<int64_t> first, int64_t end, Position position,
         const Source& source);

  // The next value; none at the end.
  std::optional<int64_t> next();

 private:
  bool is_inside(int64_t value) const;
  void find_rule(bool quotients, Position position, const Source& source);

  std::vector<int64_t> first_;
  ForStatement::Bound bound_;
  int64_t end_;
  size_t taken_ = 0;
  int64_t value_ = 0;
  int64_t difference_ = 0, factor_ = 1, divisor_ = 1;
};

using Bound = ForStatement::Bound;

Series::Series(const ForStatement& loop, std::vector<int64_t> first, int64_t end, Position position,
               const Source& source)
    : first_(std::move(first)), bound_(loop.bound), end_(end) {
  if (bound_ == Bound::range) {
    difference_ = 1;
    return;
  }
  // What lies beyond the end is not taken, and says nothing about what follows.
  const auto beyond = std::ranges::find_if(first_, [&](int64_t v) { return !is_inside(v); });
  if (beyond != first_.end()) {
    first_.erase(beyond + 1, first_.end());
    return;
  }
  const bool quotients = std::ranges::all_of(
      loop.terms, [](const Term& term) { return term.kind == Term::Kind::divide; });
  find_rule(quotients, position, source);
  const bool ascends = bound_ == Bound::below || bound_ == Bound::up_to;
  const bool moves =
      ascends ? difference_ > 0 || (factor_ > 1 && first_.back() > 0)
              : difference_ < 0 || (divisor_ > 1 && end_ + (bound_ == Bound::above ? 1 : 0) > 0);
  if (!moves) {
    throw source.error(
        position, fmt::format("the values {}, ... never end", fmt::join(first_, ", ")),
        ascends ? "growing values for 'below' and 'up to'"
                : "falling values for 'above' and 'down to'; quotients reach 0 at most");
  }
}

bool Series::is_inside(int64_t value) const {
  if (bound_ == Bound::below) return value < end_;
  if (bound_ == Bound::above) return value > end_;
  return bound_ == Bound::down_to ? value >= end_ : value <= end_;
}

void Series::find_rule(bool quotients, Position position, const Source& source) {
  const auto follows = [&](auto next) {
    for (size_t k = 0; k + 1 < first_.size(); ++k) {
      if (next(first_[k]) != first_[k + 1]) return false;
    }
    return true;
  };
  const int64_t a = first_[0], b = first_[1];
  const bool by_difference = follows([&](int64_t v) { return v + (b - a); });
  if (by_difference && !(quotients && first_.size() == 2)) {
    difference_ = b - a;
    return;
  }
  // In double: what is beyond 2^53 equals none of the values.
  const int64_t ratio = a > 0 ? b / a : 0;
  const auto times = [&](int64_t v) { return static_cast<double>(v) * static_cast<double>(ratio); };
  if (a > 0 && b > a && b % a == 0 &&
      follows([&](int64_t v) { return static_cast<int64_t>(std::min(times(v), 0x1p60)); })) {
    factor_ = ratio;
    return;
  }
  // The smallest divisor that takes a to b, rounding down.
  const int64_t divisor = b >= 0 && a > b ? a / (b + 1) + 1 : 0;
  if (divisor > 1 && follows([&](int64_t v) { return v / divisor; })) {
    divisor_ = divisor;
    return;
  }
  throw source.error(position, fmt::format("the values {}, ...", fmt::join(first_, ", ")),
                     "a constant difference or a constant ratio");
}

std::optional<int64_t> Series::next() {
  if (taken_ < first_.size()) {
    value_ = first_[taken_];
  } else if (factor_ > 1 && value_ > (int64_t{1} << 53) / factor_) {
    return std::nullopt;  // beyond every end
  } else {
    value_ = (value_ * factor_) / divisor_ + difference_;
  }
  ++taken_;
  if (!is_inside(value_)) return std::nullopt;
  return value_;
}

constexpr int64_t statement_work = 8;  // in terms

// What the program's task gives and wants on every processor.
struct Columns {
  int inputs, outputs;
};
Columns columns_of(const StaticProgram& program) {
  if (const Definition* definition = find_definition(program.task)) {
    return {definition->inputs.count(program.processors),
            definition->outputs.count(program.processors)};
  }
  const TaskShape shape = find_task(program.task).shape(program.length);
  return {shape.data_columns, shape.output_columns};
}

}  // namespace

Elaborator::Elaborator(const SyntaxTree& tree, const std::string& name, int length,
                       const Source& source, const Limits& limits, const Settings& settings)
    : tree_(tree),
      source_(source),
      limits_(limits),
      arithmetic_(source, limits, length),
      parameters_(parameter_scope(parameters_of(tree, settings, arithmetic_))),
      builder_(name, length, processors(length)),
      state_(builder_),
      terms_(arithmetic_, state_),
      active_(static_cast<size_t>(builder_.processors()), true) {
  check_task(length);
}

StaticProgram Elaborator::run(bool whole) {
  Scope scope = parameters_;
  run(tree_.statements, scope);
  if (outputs_.empty()) {
    throw source_.error({}, "a program without output", "a line: output WORD");
  }
  StaticProgram program = source_.located({}, [&] {
    state_.flush();
    return builder_.finish(outputs_, whole);
  });
  check_columns(program);
  return program;
}

int Elaborator::processors(int length) {
  if (!tree_.processors) return length;
  const int64_t count = arithmetic_.size(*tree_.processors, parameters_);
  if (count >= 1 && count <= limits_.processors) return static_cast<int>(count);
  throw source_.error(tree_.processors->position, fmt::format("{} processors", count),
                      fmt::format("from 1 to {}", limits_.processors));
}

void Elaborator::check_task(int length) {
  if (tree_.task.empty()) return;
  if (find_definition(tree_.task) != nullptr) return builder_.set_task(tree_.task);
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

void Elaborator::check_columns(const StaticProgram& program) const {
  if (program.task.empty()) return;
  const Columns columns = columns_of(program);
  if (columns.inputs == static_cast<int>(program.inputs.size()) &&
      columns.outputs == static_cast<int>(program.outputs.size())) {
    return;
  }
  throw source_.error(tree_.task_position,
                      fmt::format("task {} with {} inputs and {} outputs", program.task,
                                  program.inputs.size(), program.outputs.size()),
                      fmt::format("{} and {} of every processor", columns.inputs, columns.outputs));
}

void Elaborator::run(const Block& block, Scope& scope) {
  for (const Statement& statement : block) {
    if (!outputs_.empty() && !std::holds_alternative<OutputStatement>(statement.is)) {
      throw source_.error(statement.position, "a statement after the output",
                          "outputs as the last lines");
    }
    arithmetic_.spend(statement_work, statement.position);
    std::visit([&](const auto& is) { execute(is, statement.position, scope); }, statement.is);
  }
}

// In branches by position or data all processors do the same, so no processor can receive less.
void Elaborator::only_outside_branches(const char* what, Position position,
                                       const char* hint) const {
  if (branches_ == 0) return;
  throw source_.error(
      position, fmt::format("{} inside an 'if' that depends on the processor or on data", what),
      "assignments", hint);
}

void Elaborator::check_new(const Scope& scope, const std::string& name, Position position) const {
  if (!scope.contains(name)) return;
  throw source_.error(position, fmt::format("'{}' has a meaning already", name.substr(0, 60)),
                      "a new name");
}

void Elaborator::execute(const ForStatement& loop, Position position, Scope& scope) {
  check_new(scope, loop.variable, position);
  std::vector<int64_t> first;
  for (const Term& term : loop.terms) first.push_back(arithmetic_.size(term, scope));
  Series series(loop, std::move(first), arithmetic_.size(loop.end, scope), position, source_);
  loop_variables_.push_back(loop.variable);
  auto met = std::ranges::find(loops_, &loop, &Loop::statement);
  if (met == loops_.end()) met = loops_.insert(met, {&loop, position, 0});
  const auto place = met - loops_.begin();
  while (const std::optional<int64_t> step = series.next()) {
    ++loops_[place].steps;
    arithmetic_.spend(statement_work, position);
    scope.insert_or_assign(loop.variable, Number::whole(static_cast<double>(*step)));
    run(loop.body, scope);
  }
  loop_variables_.pop_back();
  scope.erase(loop.variable);
}

void Elaborator::execute(const OutputStatement& statement, Position position, Scope& scope) {
  only_outside_branches("an output", position, "");
  if (!calls_.empty() || !loop_variables_.empty()) {
    throw source_.error(position, "an output inside a loop or procedure", "it as the last line");
  }
  const Term& term = statement.value;
  const auto found = scope.find(term.name);
  const bool named = term.kind == Term::Kind::name || term.kind == Term::Kind::element;
  if (named && found != scope.end() && std::holds_alternative<WordGroup>(found->second)) {
    for (const Variable word : terms_.words(term, scope).words) outputs_.push_back(word);
    return;
  }
  Cases value = terms_.evaluate(term, scope, active_, false);
  const std::string name = fmt::format("output{}", outputs_.size());
  outputs_.push_back(
      source_.located(position, [&] { return builder_.inferred_word(name, false); }));
  assign(outputs_.back(), std::move(value), position);
}

void Elaborator::execute(const AssertStatement& statement, Position position, Scope& scope) {
  if (arithmetic_.truth(statement.condition, scope, {})) return;
  std::string sizes = fmt::format("n = {}", builder_.length());
  for (const auto& [name, meaning] : parameters_) {
    sizes += fmt::format(", {} = {}", name, std::get<Number>(meaning).value);
  }
  throw source_.error(position, "the program is not for " + sizes, statement.text.substr(0, 200));
}

// For one or two processors, loops over the other processors are often rightly empty.
std::vector<std::string> Elaborator::warnings() const {
  std::vector<std::string> lines;
  for (const Loop& loop : loops_) {
    if (loop.steps > 0 || builder_.processors() <= 2) continue;
    lines.push_back(fmt::format("{}the loop over '{}' never runs for n = {}",
                                source_.at(loop.position), loop.statement->variable,
                                builder_.length()));
  }
  return lines;
}

}  // namespace posattn::language
