#include "posattn/programs/lowering/local_network.h"

#include <algorithm>
#include <stdexcept>

#include "posattn/programs/form/function_table.h"

namespace posattn {
namespace {

// What the words are when the round begins: what its instructions know, which may be less than
// what they are at some time.
std::vector<WordType> types_in(const StaticProgram& program, const Round& round) {
  std::vector<WordType> types;
  for (const Word& word : program.words) types.push_back(word.type);
  std::vector<bool> known(types.size());
  for (const Instruction& instruction : round.instructions) {
    if (instruction.kind != Operator::Kind::word) continue;
    WordType& type = types[instruction.index];
    type = known[instruction.index] ? hull(type, instruction.type) : instruction.type;
    known[instruction.index] = true;
  }
  return types;
}

class Lowering {
 public:
  Lowering(const StaticProgram& program, const Round& round, const std::vector<bool>& live, int one)
      : program_(program), atoms_(one) {
    for (const WordType& type : types_in(program, round)) atoms_.add_input(type);
    for (const Receive& receive : round.receives) atoms_.add_input(receive.type);
    for (const Instruction& instruction : round.instructions) {
      forms_.push_back(form_of(instruction));
    }
    std::vector<int> by(program.words.size(), -1);
    for (const Update& update : round.updates) by[update.word] = update.instruction;
    for (size_t w = 0; w < live.size(); ++w) {
      if (!live[w]) continue;
      result_words_.push_back(static_cast<int>(w));
      results_.push_back(by[w] < 0 ? LinearForm{{static_cast<int>(w), 1.0}}
                                   : atoms_.inlined(forms_[by[w]]));
    }
  }

  LocalNetwork lower() {
    int depth = 1;
    for (const LinearForm& result : results_) depth = std::max(depth, atoms_.level_of(result));
    LocalNetwork network;
    network.words = result_words_;
    std::vector<LinearForm> carried;  // over atoms: what the layer's inputs are
    for (size_t a = 0; a < atoms_.inputs(); ++a) carried.push_back({{static_cast<int>(a), 1.0}});
    for (int layer = 1; layer <= depth; ++layer) {
      const bool last = layer == depth;
      std::vector<LinearForm> wanted = last ? results_ : wanted_after(layer);
      network.layers.push_back(make_layer(layer, carried, wanted, last));
      carried = std::move(wanted);
    }
    return network;
  }

 private:
  LinearForm form_of(const Instruction& instruction) {
    if (instruction.kind == Operator::Kind::word) return {{instruction.index, 1.0}};
    if (instruction.kind == Operator::Kind::received) {
      return {{static_cast<int>(program_.words.size()) + instruction.index, 1.0}};
    }
    std::vector<LinearForm> operands;
    for (const int operand : instruction.operands) operands.push_back(forms_[operand]);
    return lowered_operation(instruction.kind).form(atoms_, instruction, operands);
  }

  // A rail is 0 or 1, whatever the bounds of its terms allow.
  Bounds bounds_of_carried(const LinearForm& form) const {
    for (size_t a = atoms_.inputs(); a < atoms_.size(); ++a) {
      if (atoms_[a].kind == Atom::Kind::rail && atoms_[a].form == form) return atoms_[a].bounds;
    }
    return atoms_.bounds_of(form);
  }

  // The part of a form that is known after a layer.
  LinearForm known(const LinearForm& form, int layer) const {
    LinearForm part;
    for (const auto& [atom, factor] : form) {
      if (atoms_[atom].level <= layer) part[atom] = factor;
    }
    return part;
  }
  LinearForm without_rails(const LinearForm& form) const {
    LinearForm part;
    for (const auto& [atom, factor] : form) {
      if (!atoms_.is_rail(atom, factor)) part[atom] = factor;
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
    for (size_t a = atoms_.inputs(); a < atoms_.size(); ++a) {
      const Atom& atom = atoms_[a];
      if (!needed[a]) continue;
      if (atom.kind == Atom::Kind::unit && atom.level > layer) {
        want(known(without_rails(atom.form), layer));
        for (const auto& [rail, factor] : atom.form) {
          if (atoms_.is_rail(rail, factor) && atoms_[rail].level <= layer) want(rail_form(rail));
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
        if (!lowering_.atoms_.is_rail(atom, factor)) continue;
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
      const Bounds bounds = bounds_of(form, [&](int k) { return layer_.input_bounds[k]; });
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
  Atoms atoms_;
  std::vector<LinearForm> forms_;  // of instructions, over atoms
  std::vector<LinearForm> results_;
  std::vector<int> result_words_;
};

using Forms = std::vector<LinearForm>;

bool never(const Operator&, const std::vector<int>&) { return false; }
bool always(const Operator&, const std::vector<int>&) { return true; }

constexpr LoweredOperation read = {nullptr, never};

constexpr LoweredOperation constant = {
    [](Atoms& atoms, const Operator& what, const Forms&) { return atoms.constant(what.number); },
    [](const Operator& what, const std::vector<int>&) { return what.number != 0; }};

constexpr LoweredOperation addition = {
    [](Atoms&, const Operator&, const Forms& x) { return combined(x[0], 1, x[1]); }, never};

constexpr LoweredOperation scaling = {
    [](Atoms&, const Operator& what, const Forms& x) { return scaled(x[0], what.number); }, never};

constexpr LoweredOperation minimum = {[](Atoms& atoms, const Operator&, const Forms& x) {
                                        return combined(x[0], -1,
                                                        atoms.relu(combined(x[0], -1, x[1])));
                                      },
                                      never};

constexpr LoweredOperation maximum = {[](Atoms& atoms, const Operator&, const Forms& x) {
                                        return combined(x[0], 1,
                                                        atoms.relu(combined(x[1], -1, x[0])));
                                      },
                                      never};

constexpr LoweredOperation absolute = {[](Atoms& atoms, const Operator&, const Forms& x) {
                                         return combined(x[0], 2, atoms.relu(scaled(x[0], -1)));
                                       },
                                       never};

constexpr LoweredOperation positive_part = {
    [](Atoms& atoms, const Operator&, const Forms& x) { return atoms.relu(x[0]); }, never};

constexpr LoweredOperation comparison = {
    [](Atoms& atoms, const Operator&, const Forms& x) {
      const LinearForm difference = combined(x[0], -1, x[1]);
      return combined(atoms.relu(combined(difference, 1, atoms.constant(1))), -1,
                      atoms.relu(difference));
    },
    always};

constexpr LoweredOperation selection = {[](Atoms& atoms, const Operator&, const Forms& x) {
                                          return atoms.selected(x[0], x[1], x[2],
                                                                x.size() > 3 ? &x[3] : nullptr);
                                        },
                                        always};  // in the second rail

constexpr LoweredOperation exchange = {
    [](Atoms& atoms, const Operator&, const Forms& operands) {
      // x + relu(p - x) - |x - q| = q + relu(p - x) - 2 relu(q - x)
      const LinearForm &x = operands[0], &p = operands[1], &q = operands[2];
      return combined(combined(q, 1, atoms.relu(combined(p, -1, x))), -2,
                      atoms.relu(combined(q, -1, x)));
    },
    never};

// The value where it is flattest, and from there on both sides a hinge for each change of slope.
constexpr LoweredOperation curve = {
    [](Atoms& atoms, const Operator& what, const Forms& x) {
      const FunctionTable& table = *what.table;
      const size_t middle = table.flattest_knot();
      LinearForm result = atoms.constant(table.values[middle]);
      const auto add_hinge = [&](double sign, size_t knot, double change) {
        const LinearForm side = combined(x[0], 1, atoms.constant(-table.knots[knot]));
        add_scaled(result, atoms.relu(scaled(side, sign)), change);
      };
      double slope = 0;
      for (size_t k = middle; k < table.pieces(); ++k) {
        add_hinge(1, k, table.slope(k) - slope);
        slope = table.slope(k);
      }
      slope = 0;
      for (size_t k = middle; k-- > 0;) {
        add_hinge(-1, k + 1, slope - table.slope(k));
        slope = table.slope(k);
      }
      return result;
    },
    always};

// In the order of Operator::Kind.
constexpr const LoweredOperation* rows[] = {
    &read,     &read,          &constant,   &addition,  &scaling,  &minimum, &maximum,
    &absolute, &positive_part, &comparison, &selection, &exchange, &curve};

}  // namespace

LocalNetwork lower_local(const StaticProgram& program, const Round& round,
                         const std::vector<bool>& live_after, int one) {
  return Lowering(program, round, live_after, one).lower();
}

const LoweredOperation& lowered_operation(Operator::Kind kind) {
  return *rows[static_cast<size_t>(kind)];
}

}  // namespace posattn
