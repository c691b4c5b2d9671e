// What the words hold while a round's local statements are elaborated: for each word that has
// changed a value, or several by position. The builder is told when the round ends, so that
// statements by position, however many, become one choice between values.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "posattn/programs/form/builder.h"

namespace posattn::language {

// Values by position, which cover every processor once. A single one needs no `where`.
using Cases = std::vector<Piece>;

Cases everywhere(Value value);
// f of values on the processors where they meet.
Cases mapped(const Cases& a, const std::function<Value(const Value&)>& f);
Cases combined(const Cases& a, const Cases& b,
               const std::function<Value(const Value&, const Value&)>& f);
// `a` where the bit is 1, `b` where it is 0.
Cases selected(const Cases& bit, const Cases& a, const Cases& b);
// `a` where it holds, `b` elsewhere.
Cases divided(const std::vector<bool>& where, const Cases& a, const Cases& b);

class LocalState {
 public:
  explicit LocalState(ProgramBuilder& builder) : builder_(builder) {}

  Cases read(Variable variable) const;
  void write(Variable variable, Cases cases) { changed_[variable.word] = std::move(cases); }
  void forget(Variable variable) { changed_.erase(variable.word); }
  // The word whose value, as the round began, this one holds, and in which the builder still finds
  // it: others can read it in this round. None where the value is new, or must be flushed first.
  std::optional<Variable> unchanged(Variable variable) const;
  void flush();

  // What has changed, by word; branches begin and end with it.
  using Changes = std::map<int, Cases>;
  const Changes& changes() const { return changed_; }
  Changes exchange(Changes changes) { return std::exchange(changed_, std::move(changes)); }

  ProgramBuilder& builder() { return builder_; }
  // A word that holds these numbers.
  Variable constants(const WordType& type, const std::vector<double>& by_processor);

 private:
  ProgramBuilder& builder_;
  Changes changed_;
  std::map<std::pair<int, std::vector<double>>, Variable> constants_;
};

}  // namespace posattn::language
