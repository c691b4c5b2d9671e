#include "posattn/programs/lowering/lowered_operation.h"

#include "posattn/programs/form/function_table.h"

namespace posattn {
namespace {

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

const LoweredOperation& lowered_operation(Operator::Kind kind) {
  return *rows[static_cast<size_t>(kind)];
}

}  // namespace posattn
