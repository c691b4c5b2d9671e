#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "posattn/base/error.h"
#include "posattn/programs/form/operation.h"
#include "posattn/programs/lowering/local_network.h"

namespace posattn {

void Atoms::add_input(const WordType& type) {
  atoms_.push_back({Atom::Kind::input, {}, 0, posattn::bounds_of(type)});
  ++inputs_;
}

Bounds Atoms::bounds_of(const LinearForm& form) const {
  return posattn::bounds_of(form, [&](int atom) { return atoms_[atom].bounds; });
}

int Atoms::level_of(const LinearForm& form) const {
  int level = 0;
  for (const auto& [atom, factor] : form) level = std::max(level, atoms_[atom].level);
  return level;
}

LinearForm Atoms::inlined(const LinearForm& form) const {
  LinearForm result;
  for (const auto& [atom, factor] : form) {
    if (atoms_[atom].kind == Atom::Kind::rail) {
      add_scaled(result, inlined(atoms_[atom].form), factor);
    } else {
      add_term(result, atom, factor);
    }
  }
  return result;
}

bool Atoms::is_rail(int atom, double factor) const {
  return atoms_[atom].kind == Atom::Kind::rail ||
         (atoms_[atom].kind == Atom::Kind::input && std::abs(factor) == choice_limit);
}

int Atoms::find_or_add(Atom::Kind kind, const LinearForm& form, int level, Bounds bounds) {
  for (size_t a = inputs_; a < atoms_.size(); ++a) {
    if (atoms_[a].kind == kind && atoms_[a].form == form) return static_cast<int>(a);
  }
  atoms_.push_back({kind, form, level, bounds});
  return static_cast<int>(atoms_.size()) - 1;
}

LinearForm Atoms::relu(const LinearForm& form) {
  // relu(k f) = k relu(f): units that differ by a factor are one.
  return form.empty() ? form : relu(form, common_factor(form));
}

LinearForm Atoms::relu(const LinearForm& form, double factor) {
  const Bounds bounds = bounds_of(form);
  if (bounds.low >= 0) return form;
  if (bounds.high <= 0) return {};
  const int atom = find_or_add(Atom::Kind::unit, scaled(form, 1 / factor), 1 + level_of(form),
                               {0, bounds.high / factor});
  return {{atom, factor}};
}

// A bit that opens or shuts: an input as it is, anything else as a number of its own.
int Atoms::rail_of(const LinearForm& bit) {
  if (bit.size() == 1 && bit.begin()->second == 1 &&
      atoms_[bit.begin()->first].kind == Atom::Kind::input) {
    return bit.begin()->first;
  }
  return find_or_add(Atom::Kind::rail, inlined(bit), std::max(1, level_of(bit)), {0, 1});
}

LinearForm Atoms::constant(double number) const {
  if (number == 0) return {};
  if (one_ < 0) throw std::logic_error("a constant without the word that holds 1");
  return {{one_, number}};
}

// Whether value x bit can be made of small whole numbers.
bool Atoms::is_small(const LinearForm& bit, const LinearForm& value) const {
  constexpr double limit = 1 << 22;
  const Bounds bounds = bounds_of(value);
  if (!(bounds.magnitude() < limit)) return false;  // reals have no bounds
  double sum = 0;
  for (const auto& [atom, factor] : bit) sum += std::abs(factor) * atoms_[atom].bounds.magnitude();
  for (const auto& [atom, factor] : value) {
    if (factor != std::floor(factor)) return false;
  }
  return (sum + 1) * (bounds.high - bounds.low) < limit;
}

// value x bit of whole numbers: low bit + relu(value - low - range (1 - bit)), one layer after
// both.
LinearForm Atoms::opened(const LinearForm& bit, const LinearForm& value) {
  const Bounds bounds = bounds_of(value);
  const double range = bounds.high - bounds.low;
  LinearForm result = scaled(bit, bounds.low);
  if (range == 0) return result;
  LinearForm gated = combined(inlined(value), 1, constant(-bounds.low - range));
  add_scaled(gated, inlined(bit), range);
  add_scaled(result, relu(gated), 1);
  return result;
}

LinearForm Atoms::selected(const LinearForm& bit, const LinearForm& a, const LinearForm& b,
                           const LinearForm* complement) {
  const LinearForm otherwise = complement ? *complement : combined(constant(1), -1, bit);
  if (is_small(bit, a) && is_small(otherwise, b)) {
    return combined(opened(bit, a), 1, opened(otherwise, b));
  }
  const int open = rail_of(bit), closed = rail_of(otherwise);
  LinearForm result;
  for (const auto& [value, rail] : {std::pair{&a, closed}, std::pair{&b, open}}) {
    for (const double sign : {1.0, -1.0}) {
      const double high = bounds_of(scaled(*value, sign)).high;
      if (high <= 0) continue;
      if (std::isfinite(high) && high >= choice_limit) {
        throw Error(ExitCode::configuration, fmt::format("a choice of numbers up to {:.4g}", high),
                    "numbers below 2^60 = 1.15e18: beyond, the other one cannot be shut out");
      }
      LinearForm gated = scaled(inlined(*value), sign);
      add_term(gated, rail, -choice_limit);
      add_scaled(result, relu(gated, 1), sign);
    }
  }
  return result;
}

}  // namespace posattn
