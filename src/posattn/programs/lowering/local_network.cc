#include "posattn/programs/lowering/local_network.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace posattn {
namespace {

using Kind = Expression::Kind;

constexpr double infinity = std::numeric_limits<double>::infinity();
// Beyond every value that is selected; a power of two, so that nothing is rounded.
const double shut = std::ldexp(1.0, 60);

// A power of two to take out of a form: that changes no digit.
double common_factor(const LinearForm& form) {
  return std::exp2(std::floor(std::log2(std::abs(form.begin()->second))));
}

// A value that forms are made of.
struct Atom {
  enum class Kind {
    input,  // of the round's first layer
    unit,   // relu(form)
    rail,   // form, as a number of its own: what opens and shuts a selection must be exactly 0 or 1
  };
  Kind kind;
  LinearForm form;  // over atoms
  int level;        // the layer after which it is known
  Bounds bounds;
  std::string name;
};

class Lowering {
 public:
  Lowering(const StaticProgram& program, const Round& round, const std::vector<bool>& live, int one)
      : program_(program), one_(one) {
    for (const Word& word : program.words) add_input(word.type, word.name);
    for (const Receive& receive : round.receives) add_input(receive.type, receive.name);
    for (const Instruction& instruction : round.instructions) {
      forms_.push_back(form_of(instruction));
    }
    std::vector<int> by(program.words.size(), -1);
    for (const Update& update : round.updates) by[update.word] = update.instruction;
    for (size_t w = 0; w < live.size(); ++w) {
      if (!live[w]) continue;
      result_words_.push_back(static_cast<int>(w));
      results_.push_back(by[w] < 0 ? LinearForm{{static_cast<int>(w), 1.0}}
                                   : inlined(forms_[by[w]]));
    }
  }

  LocalNetwork lower() {
    int depth = 1;
    for (const LinearForm& result : results_) depth = std::max(depth, level_of(result));
    LocalNetwork network;
    network.words = result_words_;
    std::vector<LinearForm> carried;  // over atoms: what the layer's inputs are
    for (size_t a = 0; a < inputs_; ++a) carried.push_back({{static_cast<int>(a), 1.0}});
    for (int layer = 1; layer <= depth; ++layer) {
      const bool last = layer == depth;
      std::vector<LinearForm> wanted = last ? results_ : wanted_after(layer);
      network.layers.push_back(make_layer(layer, carried, wanted, last));
      carried = std::move(wanted);
    }
    return network;
  }

 private:
  void add_input(const WordType& type, const std::string& name) {
    const Bounds bounds =
        type.is_real() ? Bounds{-infinity, infinity}
                       : Bounds{static_cast<double>(type.low), static_cast<double>(type.high)};
    atoms_.push_back({Atom::Kind::input, {}, 0, bounds, name});
    ++inputs_;
  }

  Bounds bounds_of(const LinearForm& form) const {
    Bounds sum{0, 0};
    for (const auto& [atom, factor] : form) {
      const Bounds& of_atom = atoms_[atom].bounds;
      sum.low += factor > 0 ? factor * of_atom.low : factor * of_atom.high;
      sum.high += factor > 0 ? factor * of_atom.high : factor * of_atom.low;
    }
    return sum;
  }

  // A rail is 0 or 1, whatever the bounds of its terms allow.
  Bounds bounds_of_carried(const LinearForm& form) const {
    for (const Atom& atom : atoms_) {
      if (atom.kind == Atom::Kind::rail && atom.form == form) return atom.bounds;
    }
    return bounds_of(form);
  }

  int level_of(const LinearForm& form) const {
    int level = 0;
    for (const auto& [atom, factor] : form) level = std::max(level, atoms_[atom].level);
    return level;
  }

  // Rails replaced by what they are the sum of.
  LinearForm inlined(const LinearForm& form) const {
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

  int find_or_add(Atom::Kind kind, const LinearForm& form, int level, Bounds bounds) {
    for (size_t a = inputs_; a < atoms_.size(); ++a) {
      if (atoms_[a].kind == kind && atoms_[a].form == form) return static_cast<int>(a);
    }
    atoms_.push_back({kind, form, level, bounds, ""});
    return static_cast<int>(atoms_.size()) - 1;
  }

  // relu(form), as a form.
  LinearForm relu_of(const LinearForm& form) {
    if (form.empty()) return {};
    const Bounds bounds = bounds_of(form);
    if (bounds.low >= 0) return form;
    if (bounds.high <= 0) return {};
    // relu(k f) = k relu(f): units that differ by a factor are one.
    const double factor = common_factor(form);
    const int atom = find_or_add(Atom::Kind::unit, scaled(form, 1 / factor), 1 + level_of(form),
                                 {0, bounds.high / factor});
    return {{atom, factor}};
  }

  // A bit that opens or shuts: an input as it is, anything else as a number of its own.
  int rail_of(const LinearForm& bit) {
    if (bit.size() == 1 && bit.begin()->second == 1 &&
        atoms_[bit.begin()->first].kind == Atom::Kind::input) {
      return bit.begin()->first;
    }
    return find_or_add(Atom::Kind::rail, inlined(bit), std::max(1, level_of(bit)), {0, 1});
  }

  LinearForm constant(double number) const {
    if (number == 0) return {};
    if (one_ < 0) throw std::logic_error("a constant without the word that holds 1");
    return {{one_, number}};
  }

  LinearForm combined(const LinearForm& a, double factor, const LinearForm& b) const {
    LinearForm result = a;
    add_scaled(result, b, factor);
    return result;
  }

  LinearForm selected(const LinearForm& bit, const LinearForm& a, const LinearForm& b) {
    const int open = rail_of(bit), closed = rail_of(combined(constant(1), -1, bit));
    LinearForm result;
    for (const auto& [value, rail] : {std::pair{&a, closed}, std::pair{&b, open}}) {
      for (const double sign : {1.0, -1.0}) {
        if (bounds_of(scaled(*value, sign)).high <= 0) continue;
        LinearForm gated = scaled(inlined(*value), sign);
        add_term(gated, rail, -shut);
        add_scaled(result, relu_of(gated), sign);
      }
    }
    return result;
  }

  LinearForm form_of(const Instruction& instruction) {
    const auto operand = [&](int k) -> const LinearForm& {
      return forms_[instruction.operands[k]];
    };
    switch (instruction.kind) {
      case Kind::word:
        return {{instruction.index, 1.0}};
      case Kind::received:
        return {{static_cast<int>(program_.words.size()) + instruction.index, 1.0}};
      case Kind::constant:
        return constant(instruction.number);
      case Kind::add:
        return combined(operand(0), 1, operand(1));
      case Kind::scale:
        return scaled(operand(0), instruction.number);
      case Kind::minimum:
        return combined(operand(0), -1, relu_of(combined(operand(0), -1, operand(1))));
      case Kind::maximum:
        return combined(operand(0), 1, relu_of(combined(operand(1), -1, operand(0))));
      case Kind::absolute:
        return combined(operand(0), 2, relu_of(scaled(operand(0), -1)));
      case Kind::relu:
        return relu_of(operand(0));
      case Kind::at_least: {
        const LinearForm difference = combined(operand(0), -1, operand(1));
        return combined(relu_of(combined(difference, 1, constant(1))), -1, relu_of(difference));
      }
      case Kind::select:
        return selected(operand(0), operand(1), operand(2));
      case Kind::exchange: {  // x + relu(p - x) - |x - q| = q + relu(p - x) - 2 relu(q - x)
        const LinearForm &x = operand(0), &p = operand(1), &q = operand(2);
        return combined(combined(q, 1, relu_of(combined(p, -1, x))), -2,
                        relu_of(combined(q, -1, x)));
      }
    }
    return {};
  }

  // The part of a form that is known after a layer.
  LinearForm known(const LinearForm& form, int layer) const {
    LinearForm part;
    for (const auto& [atom, factor] : form) {
      if (atoms_[atom].level <= layer) part[atom] = factor;
    }
    return part;
  }
  // A gated unit reads its rail as it is, so that x - B 0 is exactly x; the rest is one sum.
  bool is_rail(int atom, double factor) const {
    return atoms_[atom].kind == Atom::Kind::rail ||
           (atoms_[atom].kind == Atom::Kind::input && std::abs(factor) == shut);
  }
  LinearForm without_rails(const LinearForm& form) const {
    LinearForm part;
    for (const auto& [atom, factor] : form) {
      if (!is_rail(atom, factor)) part[atom] = factor;
    }
    return part;
  }
  // What a rail is the sum of.
  LinearForm rail_form(int atom) const {
    return atoms_[atom].kind == Atom::Kind::rail ? atoms_[atom].form : LinearForm{{atom, 1.0}};
  }

  // Units that the results need.
  std::vector<bool> needed_atoms() const {
    std::vector<bool> needed(atoms_.size());
    const auto mark = [&](const auto& self, const LinearForm& form) -> void {
      for (const auto& [atom, factor] : form) {
        if (needed[atom]) continue;
        needed[atom] = true;
        self(self, atoms_[atom].form);
      }
    };
    for (const LinearForm& result : results_) mark(mark, result);
    return needed;
  }

  std::vector<LinearForm> wanted_after(int layer) const {
    std::vector<LinearForm> wanted;
    const auto want = [&](const LinearForm& form) {
      if (!form.empty() && std::ranges::find(wanted, form) == wanted.end()) wanted.push_back(form);
    };
    const std::vector<bool> needed = needed_atoms();
    for (size_t a = inputs_; a < atoms_.size(); ++a) {
      const Atom& atom = atoms_[a];
      if (!needed[a]) continue;
      if (atom.kind == Atom::Kind::unit && atom.level > layer) {
        want(known(without_rails(atom.form), layer));
        for (const auto& [rail, factor] : atom.form) {
          if (is_rail(rail, factor) && atoms_[rail].level <= layer) want(rail_form(rail));
        }
      }
      if (atom.kind == Atom::Kind::rail && atom.level > layer) want(known(atom.form, layer));
    }
    for (const LinearForm& result : results_) want(known(result, layer));
    return wanted;
  }

  // One layer, from the inputs `carried` to the outputs `wanted`, both forms over atoms.
  class LayerMaker {
   public:
    LayerMaker(const Lowering& lowering, int number, const std::vector<LinearForm>& carried)
        : lowering_(lowering), number_(number), carried_(carried) {
      for (const LinearForm& form : carried) {
        layer_.input_bounds.push_back(lowering.bounds_of_carried(form));
      }
    }

    void add_output(const LinearForm& wanted, std::string name) {
      LinearForm units, passed;  // over this layer's units; over atoms known before
      for (const auto& [atom, factor] : wanted) {
        const Atom& of = lowering_.atoms_[atom];
        if (of.level == number_ && of.kind == Atom::Kind::unit) {
          add_term(units, unit(input_of_unit(of.form)), factor);
        } else {
          passed[atom] = factor;
        }
      }
      pass(number_ == 1 ? passed : from_carried(passed), units);
      layer_.outputs.push_back(std::move(units));
      layer_.names.push_back(std::move(name));
    }

    LocalLayer finish() { return std::move(layer_); }

   private:
    // A unit's form over this layer's inputs.
    LinearForm input_of_unit(const LinearForm& form) const {
      if (number_ == 1) return form;
      LinearForm inputs = from_carried(lowering_.without_rails(form));
      for (const auto& [atom, factor] : form) {
        if (!lowering_.is_rail(atom, factor)) continue;
        add_scaled(inputs, from_carried(lowering_.rail_form(atom)), factor);
      }
      return inputs;
    }

    // The input that carries this sum.
    LinearForm from_carried(const LinearForm& sum) const {
      if (sum.empty()) return {};
      const auto found = std::ranges::find(carried_, sum);
      if (found == carried_.end()) throw std::logic_error("a sum that nobody carries");
      return {{static_cast<int>(found - carried_.begin()), 1.0}};
    }

    int unit(const LinearForm& form) {
      const auto found = std::ranges::find(layer_.units, form);
      if (found != layer_.units.end()) return static_cast<int>(found - layer_.units.begin());
      layer_.units.push_back(form);
      return static_cast<int>(layer_.units.size()) - 1;
    }

    // Adds form = relu(form) - relu(-form), one of which may be known to be zero.
    void pass(const LinearForm& form, LinearForm& output) {
      if (form.empty()) return;
      Bounds bounds{0, 0};
      for (const auto& [input, factor] : form) {
        const Bounds& of = layer_.input_bounds[input];
        bounds.low += factor > 0 ? factor * of.low : factor * of.high;
        bounds.high += factor > 0 ? factor * of.high : factor * of.low;
      }
      const double factor = common_factor(form);
      const LinearForm plain = scaled(form, 1 / factor);
      if (bounds.high > 0) add_term(output, unit(plain), factor);
      if (bounds.low < 0) add_term(output, unit(scaled(plain, -1)), -factor);
    }

    const Lowering& lowering_;
    int number_;
    const std::vector<LinearForm>& carried_;
    LocalLayer layer_;
  };

  LocalLayer make_layer(int number, const std::vector<LinearForm>& carried,
                        const std::vector<LinearForm>& wanted, bool last) const {
    LayerMaker maker(*this, number, carried);
    for (size_t k = 0; k < wanted.size(); ++k) {
      // In the last layer the results are whole; before it, forms say what is known.
      maker.add_output(wanted[k], last ? program_.words[result_words_[k]].name : "partial");
    }
    return maker.finish();
  }

  const StaticProgram& program_;
  int one_;
  std::vector<Atom> atoms_;  // inputs first
  size_t inputs_ = 0;
  std::vector<LinearForm> forms_;  // of instructions, over atoms
  std::vector<LinearForm> results_;
  std::vector<int> result_words_;
};

}  // namespace

LocalNetwork lower_local(const StaticProgram& program, const Round& round,
                         const std::vector<bool>& live_after, int one) {
  return Lowering(program, round, live_after, one).lower();
}

}  // namespace posattn
