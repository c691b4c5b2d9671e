// Runs a program's statements for one n, which builds the static program. Each kind of statement
// has a file: elaborator_words.cc, elaborator_receives.cc and elaborator_branches.cc.
#pragma once

#include <tuple>

#include "posattn/programs/form/static_program.h"
#include "posattn/programs/language/language.h"
#include "posattn/programs/language/local_terms.h"

namespace posattn::language {

class Elaborator {
 public:
  Elaborator(const SyntaxTree& tree, const std::string& name, int length, const Source& source,
             const Limits& limits, const Settings& settings);

  StaticProgram run(bool whole);  // see ProgramBuilder::finish
  // Lines about what is allowed and odd: loops that never run.
  std::vector<std::string> warnings() const;

 private:
  int processors(int length);
  void check_task(int length);
  void check_columns(const StaticProgram& program) const;
  void run(const Block& block, Scope& scope);
  void only_outside_branches(const char* what, Position position, const char* hint) const;
  void check_new(const Scope& scope, const std::string& name, Position position) const;

  void execute(const ForStatement& loop, Position position, Scope& scope);
  void execute(const OutputStatement& statement, Position position, Scope& scope);
  void execute(const AssertStatement& statement, Position position, Scope& scope);

  // Words and names.
  void execute(const WordStatement& word, Position position, Scope& scope);
  void execute(const AssignStatement& statement, Position position, Scope& scope);
  void execute(const LetStatement& let, Position position, Scope& scope);
  void execute(const TableStatement& statement, Position position, Scope& scope);
  WordType type_of(const WordStatement& word, const Scope& scope);
  Variable declare(const WordStatement& word, const std::string& name, const WordType& type,
                   Position position, const Scope& scope);
  Cases value(const Term& term, const WordType& type, const Scope& scope);
  void assign(Variable variable, Cases cases, Position position);
  Meaning static_value(const Term& term, const Scope& scope);

  // Branches.
  using Join = std::function<Cases(const Cases& then, const Cases& otherwise)>;
  void execute(const IfStatement& statement, Position position, Scope& scope);
  void spend_branch(Position position, const Scope& scope);
  LocalState::Changes branch(const Block& block, const Scope& scope, std::vector<bool> active);
  void join_branches(const LocalState::Changes& then, const LocalState::Changes& otherwise,
                     const Join& join);
  Cases limited(Cases cases, Position position) const;
  void run_by_position(const IfStatement& statement, Position position, Scope& scope);
  void run_by_data(const IfStatement& statement, Position position, Scope& scope);

  // Receives.
  void execute(const ReceiveStatement& statement, Position position, Scope& scope);
  void execute(const SumStatement& statement, Position position, Scope& scope);
  void execute(const SendStatement& statement, Position position, Scope& scope);
  void need_whole(const Cases& destination, Position position) const;
  Variable destination(const SendStatement& statement, Position position, const Scope& scope);
  using Fold = Value (*)(const Value&, const Value&);
  // Receives along one route, or along several and joins what arrives by `fold`.
  void receive(const std::string& target, const WordGroup& source, const std::vector<Route>& routes,
               Fold fold, Position position, Scope& scope);
  WordGroup receive_group(const std::string& name, const std::string& suffix,
                          const WordGroup& source, Route route, Position position);

  // Procedures.
  void execute(const CallStatement& call, Position position, Scope& scope);
  Meaning argument(const Term& term, const Scope& scope);

  const SyntaxTree& tree_;
  const Source& source_;
  const Limits& limits_;
  Arithmetic arithmetic_;
  Scope parameters_;  // which procedures see, too
  ProgramBuilder builder_;
  LocalState state_;
  LocalTerms terms_;
  std::vector<bool> active_;  // the processors that a branch is for
  int branches_ = 0;
  std::map<std::tuple<const WordStatement*, int64_t, int64_t, int64_t>, WordGroup> declared_;
  std::vector<std::string> loop_variables_, calls_;
  std::string prefix_;  // of names inside a procedure
  std::map<const SendStatement*, Variable> destinations_;
  struct Loop {
    const ForStatement* statement;
    Position position;
    int64_t steps;
  };
  std::vector<Loop> loops_;  // all that were met, in the order of their first time
  std::vector<Variable> outputs_;
};

}  // namespace posattn::language
