#include "posattn/programs/language/local_state.h"

#include <fmt/format.h>

#include <algorithm>

namespace posattn::language {
namespace {

bool is_everywhere(const Piece& piece) { return piece.where.empty(); }

// Adds a case, if it holds anywhere; the same value in two cases is one.
void add_case(Cases& cases, std::vector<bool> where, const Value& value) {
  if (std::ranges::none_of(where, [](bool here) { return here; })) return;
  for (Piece& piece : cases) {
    if (piece.value != value) continue;
    for (size_t i = 0; i < where.size(); ++i) piece.where[i] = piece.where[i] || where[i];
    return;
  }
  cases.push_back({std::move(where), value});
}

std::vector<bool> both(const std::vector<bool>& a, const std::vector<bool>& b) {
  if (a.empty()) return b;
  if (b.empty()) return a;
  std::vector<bool> result(a.size());
  for (size_t i = 0; i < a.size(); ++i) result[i] = a[i] && b[i];
  return result;
}

Cases simplified(Cases cases) {
  if (cases.size() == 1) cases[0].where.clear();
  return cases;
}

}  // namespace

Cases everywhere(Value value) { return {{{}, std::move(value)}}; }

Cases mapped(const Cases& a, const std::function<Value(const Value&)>& f) {
  Cases result;
  for (const Piece& piece : a) result.push_back({piece.where, f(piece.value)});
  return result;
}

Cases combined(const Cases& a, const Cases& b,
               const std::function<Value(const Value&, const Value&)>& f) {
  if (is_everywhere(b[0])) return mapped(a, [&](const Value& x) { return f(x, b[0].value); });
  if (is_everywhere(a[0])) return mapped(b, [&](const Value& y) { return f(a[0].value, y); });
  Cases result;
  for (const Piece& left : a) {
    for (const Piece& right : b) {
      const std::vector<bool> where = both(left.where, right.where);
      if (std::ranges::none_of(where, [](bool here) { return here; })) continue;
      add_case(result, where, f(left.value, right.value));
    }
  }
  return simplified(std::move(result));
}

Cases divided(const std::vector<bool>& where, const Cases& a, const Cases& b) {
  std::vector<bool> elsewhere = where;
  elsewhere.flip();
  Cases result;
  for (const Piece& piece : a) add_case(result, both(piece.where, where), piece.value);
  for (const Piece& piece : b) add_case(result, both(piece.where, elsewhere), piece.value);
  return simplified(std::move(result));
}

Cases selected(const Cases& bit, const Cases& a, const Cases& b) {
  Cases result;
  for (const Piece& piece : bit) {
    const Cases here = combined(a, b, [&](const Value& x, const Value& y) {
      return x == y ? x : select(piece.value, x, y);
    });
    result = result.empty() ? here : divided(piece.where, here, result);
  }
  return result;
}

Cases LocalState::read(Variable variable) const {
  const auto found = changed_.find(variable.word);
  return found == changed_.end() ? everywhere(builder_[variable]) : found->second;
}

std::optional<Variable> LocalState::unchanged(Variable variable) const {
  const auto is_word = [](const Value& value) { return value->kind == Expression::Kind::word; };
  const auto found = changed_.find(variable.word);
  if (found == changed_.end()) {  // the builder follows the copies that it knows of
    return is_word(builder_[variable]) ? std::optional(variable) : std::nullopt;
  }
  const Cases& now = found->second;
  if (now.size() != 1 || !is_word(now[0].value)) return std::nullopt;
  const Variable copied{now[0].value->index};
  // Another may have been received into it in this round.
  const Value& there = builder_[copied];
  return is_word(there) && there->index == copied.word ? std::optional(copied) : std::nullopt;
}

void LocalState::flush() {
  for (auto& [word, cases] : changed_) {
    if (is_everywhere(cases[0])) {
      builder_.set({word}, cases[0].value);
    } else {
      builder_.set({word}, std::move(cases));
    }
  }
  changed_.clear();
}

Variable LocalState::constants(const WordType& type, const std::vector<double>& by_processor) {
  const auto [place, added] =
      constants_.try_emplace({static_cast<int>(type.kind), by_processor}, Variable{});
  if (added) {
    place->second =
        builder_.word(fmt::format("constants {}", constants_.size()), type, by_processor);
  }
  return place->second;
}

}  // namespace posattn::language
