#include "posattn/programs/form/builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "posattn/base/error.h"
#include "posattn/base/watch.h"

namespace posattn {
namespace {

using Kind = Expression::Kind;

// Limits programs to a size that a network can have.
constexpr size_t most_words = 8192;
constexpr size_t most_receives = 4096;
constexpr int64_t most_route_numbers = int64_t{1} << 28;

bool fits(const WordType& value, const WordType& word) {
  if (word.is_real()) return true;
  return !value.is_real() && value.low >= word.low && value.high <= word.high;
}

bool is_own(const Value& value) { return value->kind == Kind::word; }
bool is_received(const Value& value) { return value->kind == Kind::received; }

}  // namespace

ProgramBuilder::ProgramBuilder(std::string name, int length, int processors) {
  program_.name = std::move(name);
  program_.length = length;
  program_.processors = processors == 0 ? length : processors;
}

Variable ProgramBuilder::word(const std::string& name, const WordType& type,
                              std::vector<double> initial) {
  for (const double x : initial) {
    const bool whole = x == std::floor(x);
    if (!type.is_real() &&
        (!whole || x < static_cast<double>(type.low) || x > static_cast<double>(type.high))) {
      throw Error(ExitCode::configuration, fmt::format("word '{}' starts with {}", name, x),
                  "a value of its type, " + to_string(type));
    }
  }
  if (initial.empty() && !fits(WordType::integer(0, 0), type)) {
    throw Error(ExitCode::configuration, fmt::format("word '{}' starts with 0", name),
                "a value of its type, " + to_string(type));
  }
  return add_word({name, type, std::move(initial)}, Typing::declared);
}

Variable ProgramBuilder::inferred_word(const std::string& name, bool whole,
                                       std::vector<double> initial) {
  WordType type = constant_value(initial.empty() ? 0 : initial[0])->type;
  for (const double x : initial) type = hull(type, constant_value(x)->type);
  if (whole && type.is_real()) {
    throw Error(ExitCode::configuration, fmt::format("word '{}' starts with a real", name),
                "whole numbers, as its type is int");
  }
  return add_word({name, type, std::move(initial)}, whole ? Typing::whole : Typing::free);
}

Variable ProgramBuilder::add_word(Word word, Typing typing) {
  if (program_.words.size() == most_words) {
    throw Error(ExitCode::configuration, "too many words", fmt::format("at most {}", most_words));
  }
  const auto index = static_cast<int>(program_.words.size());
  typing_.push_back(typing);
  types_.push_back(word.type);
  current_.push_back(word_value(index, word.type));
  program_.words.push_back(std::move(word));
  return {index};
}

Variable ProgramBuilder::input(const std::string& name, const WordType& type) {
  // The input's type may leave out zero: the word never holds the initial value.
  const Variable variable = add_word({name, type, {}}, Typing::declared);
  program_.inputs.push_back(variable.word);
  return variable;
}

void ProgramBuilder::promise(Promise promise, int count) {
  const int n = program_.processors;
  const int first = static_cast<int>(program_.inputs.size()) - count;
  const Word& word = program_.words[program_.inputs[first]];
  const auto refuse_unless = [&](bool fits, const std::string& expected) {
    if (fits) return;
    throw Error(ExitCode::configuration,
                fmt::format("{} input{} of type {} as {}", count, count == 1 ? "" : "s",
                            to_string(word.type), to_string(promise)),
                expected);
  };
  const auto holds = [&](int64_t from, int64_t to) {
    return !word.type.is_real() && word.type.low <= from && word.type.high >= to;
  };
  refuse_unless(!word.type.is_real(), "whole numbers");
  switch (promise) {
    case Promise::same:
      refuse_unless(count == 1, "one word");
      break;
    case Promise::permutation:
      refuse_unless(count == 1 && holds(0, n - 1), "one word of int[0..n - 1]");
      break;
    case Promise::list:
      refuse_unless(count == 1 && holds(-1, n - 1), "one word of int[-1..n - 1]");
      break;
    case Promise::symmetric:
      refuse_unless(count == n && holds(0, 0), fmt::format("an array of {} words", n));
      break;
  }
  program_.promises.push_back({promise, first, count});
}

Value ProgramBuilder::received(int index) const {
  return received_value(index, round_.receives[index].type);
}

// Whole multiples of whole numbers have whole sums.
WordType ProgramBuilder::received_type(int word, const Route& route) const {
  const WordType& type = types_[word];
  if (!route.is_weighted()) {
    const bool misses = route.is_sent() || std::ranges::find(route.sources, program_.processors) !=
                                               route.sources.end();
    return misses ? with_zero(type) : type;
  }
  if (type.is_real()) return type;
  double low = 0, high = 0;
  for (const auto& row : route.weighted) {
    double least = 0, most = 0;
    for (const auto& [j, weight] : row) {
      if (weight != std::floor(weight)) return WordType::real();
      const double a = weight * static_cast<double>(type.low);
      const double b = weight * static_cast<double>(type.high);
      least += std::min(a, b);
      most += std::max(a, b);
    }
    low = std::min(low, least);
    high = std::max(high, most);
  }
  // Beyond, no network is exact: reals are rounded, whole numbers must not be.
  if (std::max(-low, high) >= 0x1p53) return WordType::real();
  return WordType::integer(static_cast<int64_t>(low), static_cast<int64_t>(high));
}

int ProgramBuilder::add_receive(int word, Route route, const std::string& name) {
  const WordType type = received_type(word, route);
  for (size_t r = 0; r < round_.receives.size(); ++r) {  // received already
    if (round_.receives[r].word == word && round_.receives[r].route == route) {
      return static_cast<int>(r);
    }
  }
  route_numbers_ += program_.processors;
  for (const auto& row : route.weighted) route_numbers_ += 4 * static_cast<int64_t>(row.size());
  if (round_.receives.size() == most_receives || route_numbers_ > most_route_numbers) {
    throw Error(ExitCode::configuration, "too many receives",
                fmt::format("at most {} in a round, and {} places in all", most_receives,
                            most_route_numbers));
  }
  round_.receives.push_back({name, word, std::move(route), type});
  return static_cast<int>(round_.receives.size()) - 1;
}

void ProgramBuilder::note_line(int line) {
  if (line <= 0) return;
  const auto place = std::ranges::lower_bound(round_.lines, line);
  if (place == round_.lines.end() || *place != line) round_.lines.insert(place, line);
}

Route ProgramBuilder::route_to(const Place& place) const {
  Route route;
  for (int i = 0; i < program_.processors; ++i) {
    const int64_t j = place(i);
    const bool outside = j < 0 || j >= program_.processors;
    route.sources.push_back(outside ? program_.processors : static_cast<int32_t>(j));
  }
  return route;
}

Variable ProgramBuilder::receive(const std::string& name, Variable from, const Place& place,
                                 int line) {
  return receive(name, from, route_to(place), line);
}

void ProgramBuilder::receive(Variable into, Variable from, const Place& place, int line) {
  set(into, receive_value(program_.words[into.word].name, from, route_to(place), line));
}

Value ProgramBuilder::receive_value(const std::string& name, Variable from, Route route, int line) {
  // A round's receives come before its local function: what has changed is only there to be read
  // in the next round. A word that holds another's old value is read there.
  bool changed = !is_own(current_[from.word]);
  Route::visit_words(route, [&](int word) { changed = changed || !is_own(current_[word]); });
  // All heads of a layer attend to positions, or all to the data.
  const bool other_kind =
      !round_.receives.empty() && round_.receives.front().route.is_scored() != route.is_scored();
  if (changed || other_kind) close_round();
  Route::visit_words(route, [&](int& word) { word = current_[word]->index; });
  note_line(line);
  return received(add_receive(current_[from.word]->index, std::move(route), name));
}

Variable ProgramBuilder::receive(const std::string& name, Variable from, Route route, int line) {
  return keep(name, receive_value(name, from, std::move(route), line));
}

Variable ProgramBuilder::keep(const std::string& name, const Value& received) {
  const auto [place, added] = received_words_.try_emplace(name, 0);
  if (added) place->second = inferred_word(name, false).word;
  current_[place->second] = received;
  return {place->second};
}

Variable ProgramBuilder::send(const std::string& name, Variable from, Variable to, bool permutation,
                              int line) {
  if (type_of(to).is_real()) {
    throw Error(ExitCode::configuration,
                fmt::format("messages to '{}', a real", program_.words[to.word].name),
                "an integer: whom data names must not jump between two reals");
  }
  Route route;
  route.destination = to.word;
  route.permutation = permutation;
  return receive(name, from, std::move(route), line);
}

void ProgramBuilder::check_fits(Variable variable, const Value& value) const {
  const Word& target = program_.words[variable.word];
  const Typing typing = typing_[variable.word];
  if (typing == Typing::free || (typing == Typing::whole && !value->type.is_real())) return;
  if (typing == Typing::whole) {
    throw Error(ExitCode::configuration, fmt::format("a real value for word '{}'", target.name),
                "a whole number, as its type is int");
  }
  if (fits(value->type, target.type)) return;
  throw Error(ExitCode::configuration,
              fmt::format("a value of type {} for word '{}'", to_string(value->type), target.name),
              to_string(target.type), "widen the word's type, or bound the value with min and max");
}

void ProgramBuilder::set(Variable variable, const Value& value, int line) {
  check_fits(variable, value);
  note_line(line);
  current_[variable.word] = value;
}

void ProgramBuilder::set(Variable variable, const std::vector<bool>& where, const Value& value,
                         const Value& otherwise, int line) {
  std::vector<bool> elsewhere = where;
  elsewhere.flip();
  set(variable, {{where, value}, {elsewhere, otherwise}}, line);
}

void ProgramBuilder::set(Variable variable, std::vector<Piece> pieces, int line) {
  set(variable, by_position(std::move(pieces)), line);
}

Value ProgramBuilder::by_position(std::vector<Piece> pieces) {
  std::erase_if(pieces, [](const Piece& piece) {
    return std::ranges::none_of(piece.where, [](bool here) { return here; });
  });
  if (pieces.size() == 1) return pieces[0].value;
  if (pieces.size() == 2) {
    Value result = exchanged(pieces[0].where, pieces[0].value, pieces[1].value);
    if (result) return result;
  }
  WordType type = pieces[0].value->type;
  for (const Piece& piece : pieces) type = hull(type, piece.value->type);
  if (std::ranges::all_of(pieces, [&](const Piece& p) {
        return is_zero_at_zero(*p.value) && !reads_messages(p.value);
      })) {
    Value sum = constant_value(0);
    for (const Piece& piece : pieces) {
      std::map<const Expression*, Value> done;
      sum = add(sum, gated(piece.value, piece.where, done));
    }
    // The interval of a sum does not know that all but one of its terms are zero.
    return with_type(sum, type);
  }
  Value result = pieces.back().value;
  for (size_t k = pieces.size() - 1; k-- > 0;) {
    result = select(current_[position_bit(pieces[k].where).word], pieces[k].value, result);
  }
  return result;
}

// The receiver of a message cannot be chosen by position, so no place can be left out.
bool ProgramBuilder::reads_messages(const Value& value) const {
  std::set<const Expression*> seen;
  const auto reads = [&](const auto& self, const Value& v) -> bool {
    if (!seen.insert(v.get()).second) return false;
    if (is_received(v) && round_.receives[v->index].route.is_sent()) return true;
    return std::ranges::any_of(v->operands,
                               [&](const Value& operand) { return self(self, operand); });
  };
  return reads(reads, value);
}

// Whether the second is the own word of somebody else.
bool ProgramBuilder::is_partner(const Value& own, const Value& received) const {
  if (!is_own(own) || !is_received(received)) return false;
  const Receive& receive = round_.receives[received->index];
  return receive.word == own->index && !receive.route.is_weighted() && !receive.route.is_sent();
}

// The received value on the processors of `where`; elsewhere the processor's own.
Value ProgramBuilder::redirected(const Value& other, const std::vector<bool>& where) {
  const Receive& receive = round_.receives[other->index];
  Route route = receive.route;
  for (int i = 0; i < program_.processors; ++i) {
    if (!where[i]) route.sources[i] = i;
  }
  return received(add_receive(receive.word, std::move(route), std::string(receive.name)));
}

// Comparators: min here and max there (or the other way round) of an own word x and a partner's p.
// With q the partner's where the minimum stays, and x itself elsewhere, an exchange needs two heads
// where gating needs four. Where one side keeps x, min(x, q) or max(x, q) will do.
Value ProgramBuilder::exchanged(const std::vector<bool>& where, const Value& value,
                                const Value& otherwise) {
  const auto is_extreme = [](const Value& v) {
    return v->kind == Kind::minimum || v->kind == Kind::maximum;
  };
  std::vector<bool> here = where;
  Value a = value, b = otherwise;
  if (!is_extreme(a)) {
    std::swap(a, b);
    here.flip();
  }
  if (!is_extreme(a)) return nullptr;
  Value x = a->operands[0], p = a->operands[1];
  if (!is_own(x)) std::swap(x, p);
  if (!is_partner(x, p)) return nullptr;
  const auto same = [](const Value& u, const Value& v) {
    return u->kind == v->kind && u->index == v->index && (is_own(u) || is_received(u));
  };
  const WordType type = hull(a->type, b->type);
  if (same(b, x)) {
    const Value q = redirected(p, here);
    return with_type(a->kind == Kind::minimum ? minimum(x, q) : maximum(x, q), type);
  }
  if (!is_extreme(b) || a->kind == b->kind) return nullptr;
  const auto& others = b->operands;
  const bool alike =
      (same(x, others[0]) && same(p, others[1])) || (same(x, others[1]) && same(p, others[0]));
  if (!alike) return nullptr;
  if (a->kind == Kind::maximum) here.flip();
  const Value q = redirected(p, here);
  return with_type(exchange(x, p, q), type);
}

// The value with all that it reads replaced by what is received, and that only `where`: zero
// elsewhere.
Value ProgramBuilder::gated(const Value& value, const std::vector<bool>& where,
                            std::map<const Expression*, Value>& done) {
  const auto [place, added] = done.try_emplace(value.get(), nullptr);
  if (!added) return place->second;
  Value result;
  if (is_own(value) || is_received(value)) {
    const int n = program_.processors;
    Route route;
    int word = value->index;
    if (is_own(value)) {
      for (int i = 0; i < n; ++i) route.sources.push_back(where[i] ? i : n);
    } else {
      word = round_.receives[value->index].word;
      route = round_.receives[value->index].route;
      for (int i = 0; i < n; ++i) {
        if (where[i]) continue;
        if (route.is_weighted()) {
          route.weighted[i].clear();
        } else {
          route.sources[i] = n;
        }
      }
    }
    result = received(add_receive(word, std::move(route), program_.words[word].name));
  } else {
    std::vector<Value> operands;
    for (const Value& operand : value->operands) operands.push_back(gated(operand, where, done));
    result = applied(*value, std::move(operands));
    // What the value is known to be beyond what its operands say (all such are zero at zero, or
    // bits).
    if (!(applied(*value, value->operands)->type == value->type)) {
      result = with_type(result, with_zero(value->type));
    }
  }
  done[value.get()] = result;
  return result;
}

Variable ProgramBuilder::position_bit(const std::vector<bool>& where) {
  const auto [place, added] = position_bits_.try_emplace(where, 0);
  if (added) {
    place->second = word(fmt::format("position {}", position_bits_.size()), WordType::bit(),
                         std::vector<double>(where.begin(), where.end()))
                        .word;
  }
  return {place->second};
}

void ProgramBuilder::end_round_if_changed(const std::vector<Variable>& words) {
  const auto has_changed = [&](Variable variable) { return !is_own(current_[variable.word]); };
  if (std::ranges::any_of(words, has_changed)) close_round();
}

void ProgramBuilder::close_round() {
  Watch::look();
  std::map<const Expression*, int> known;
  const auto flatten = [&](const auto& self, const Value& value) -> int {
    const auto found = known.find(value.get());
    if (found != known.end()) return found->second;
    Instruction instruction{*value, {}, value->type};
    for (const Value& operand : value->operands) {
      instruction.operands.push_back(self(self, operand));
    }
    round_.instructions.push_back(std::move(instruction));
    return known[value.get()] = static_cast<int>(round_.instructions.size()) - 1;
  };
  for (size_t w = 0; w < current_.size(); ++w) {
    const Value& value = current_[w];
    if (is_own(value) && value->index == static_cast<int>(w)) continue;
    round_.updates.push_back({static_cast<int>(w), flatten(flatten, value)});
    if (typing_[w] == Typing::declared) continue;
    types_[w] = value->type;
    program_.words[w].type = hull(program_.words[w].type, value->type);
  }
  round_.origin = origin_;
  if (!round_.updates.empty()) program_.rounds.push_back(std::move(round_));
  round_ = {};
  for (size_t w = 0; w < current_.size(); ++w) {
    current_[w] = word_value(static_cast<int>(w), types_[w]);
  }
}

StaticProgram ProgramBuilder::finish(const std::vector<Variable>& outputs, bool whole) {
  if (program_.inputs.empty()) {
    throw Error(ExitCode::configuration, "a program without input", "word x : real = input");
  }
  close_round();
  for (const Variable& output : outputs) program_.outputs.push_back(output.word);
  if (!whole) simplify(program_);
  check(program_);
  return std::move(program_);
}

}  // namespace posattn
