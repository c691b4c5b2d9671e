#include "posattn/programs/checking/rounding.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "posattn/programs/form/operation.h"

namespace posattn {
namespace {

// A value in exact arithmetic and by how much the network's may be off.
struct Bounded {
  double value = 0;
  double error = 0;      // that this round has made
  double inherited = 0;  // that the round began with; it counts where sizes do

  bool is_exact() const { return error == 0 && inherited == 0; }
  double magnitude() const { return std::abs(value) + error + inherited; }
};

// What storing a weight in fp32 leaves.
double storage_error(double weight) {
  return std::abs(weight - static_cast<double>(static_cast<float>(weight)));
}

// A sum of products, its terms added in any order.
class Dot {
 public:
  // `own_error` is what the weight is off by itself; `rounded` what rounding its products may add,
  // which exact sums of multiples of one power of two do not have.
  void add(double weight, const Bounded& x, double own_error = 0, double rounded = 0) {
    if (x.value == 0 && x.is_exact()) return;  // a product with zero and its addition are exact
    const double size = std::abs(weight);
    sum_.value += weight * x.value;
    sum_.error += size * (x.error + own_error) + storage_error(weight) * x.magnitude();
    sum_.inherited += size * x.inherited;
    rounded_ += size * rounded;
    size_ += size * x.magnitude();
    copies_ = copies_ && size == 1 && rounded == 0;
    exact_ = exact_ && own_error == 0 && x.is_exact() && storage_error(weight) == 0;
    if (exact_ && weight * x.value != 0) quantum_ = std::min(quantum_, quantum(weight * x.value));
    ++terms_;
  }
  Bounded finish(double roundoff) const {
    // Multiples of one power of two, as whole numbers are, add up exactly below 1 / u times it.
    const bool fits = exact_ && size_ * roundoff < quantum_;
    if (terms_ == 0 || (terms_ == 1 && copies_) || fits) return sum_;
    const double ku = terms_ * roundoff;
    return {sum_.value, sum_.error + rounded_ + ku / (1 - ku) * size_, sum_.inherited};
  }

 private:
  Bounded sum_;
  double size_ = 0, rounded_ = 0;
  int terms_ = 0;
  bool copies_ = true, exact_ = true;
  double quantum_ = std::numeric_limits<double>::infinity();
};

// What a weight of a row of dense attention with that many places is off by, as a part of itself.
// With u = 2^-24 and l = log w, its score l sqrt(d) is stored (u |l|), multiplied by a rounded
// 1 / sqrt(d) (3u), and has the row's largest subtracted (u; the difference is no larger than |l|,
// and what the largest is off by all have in common): the exponent is off by at most 5u |l|, which
// is the relative error of its exponential. exp itself is off by at most 3u. The row's sum has the
// errors of its terms, weighted by w: at most 5u sum w |l| + 3u, where the sum is the row's entropy
// and so at most log(places); each addition adds u. Then the reciprocal, the product with it (2u),
// and the rest of a row below 1e-7 that the compiler leaves out (2u). What is no normal number
// becomes zero.
double dense_weight_error(double weight, size_t places) {
  const auto count = static_cast<double>(places);
  const double roundings = 5 * (std::abs(std::log(weight)) + std::log(count)) + count + 10;
  return roundings * float_roundoff + std::numeric_limits<float>::min() / weight;
}

// A word or an instruction's result: what the program says, and the error from all rounds.
struct Known {
  double value = 0, error = 0;
  double slack = 0;  // what rounding in double makes, of the interpreter and the compiler
};

class Run {
 public:
  Run(const NetworkPlan& plan, double roundoff, bool dense)
      : plan_(plan),
        roundoff_(roundoff),
        dense_(dense),
        nodes_(plan.program.processors + 1),
        words_(plan.program.words.size()),
        state_(nodes_ * plan.width),
        next_(state_.size()),
        known_(nodes_ * words_),
        next_known_(known_.size()) {}

  void start(const double* input) {
    for (int i = 0; i + 1 < nodes_; ++i) {
      for (size_t w = 0; w < words_; ++w) {
        if (plan_.start[w] < 0) continue;
        const auto& initial = plan_.program.words[w].initial;
        const std::vector<int>& inputs = plan_.program.inputs;
        const auto column = std::ranges::find(inputs, static_cast<int>(w));
        const bool is_input = column != inputs.end();
        const double value = is_input ? input[i * inputs.size() + (column - inputs.begin())]
                             : initial.empty() ? 0
                                               : initial[i];
        at(i, plan_.start[w]) = {value};
        known_[i * words_ + w] = {value, is_input ? 0 : storage_error(value)};  // a weight
        at(i, plan_.start[w]).inherited = known_[i * words_ + w].error;
      }
    }
  }

  // All layers of one round (or one layer that passes the result on).
  size_t step(size_t first) {
    const int number = plan_.layers[first].round;
    const bool is_round = number < static_cast<int>(plan_.program.rounds.size());
    size_t layer = first;
    for (; layer < plan_.layers.size() && plan_.layers[layer].round == number; ++layer) {
      compute(plan_.layers[layer]);
      if (!is_round) {
        ++layer;
        break;
      }
    }
    if (is_round) inherit(plan_.program.rounds[number]);
    const PlannedLayer& last = plan_.layers[layer - 1];
    for (int column = 0; column < plan_.width; ++column) {
      const int word = last.words[column];
      for (int i = 0; i < nodes_; ++i) {
        Bounded& x = at(i, column);
        if (word >= 0) known_[i * words_ + word].error += x.error;
        // What is inherited goes through the program instead.
        x = {x.value, 0, word >= 0 ? known_[i * words_ + word].error : 0};
      }
    }
    return layer;
  }

  Known output(int i, size_t o) const {
    const Known& known = known_[i * words_ + plan_.program.outputs[o]];
    return {state_[i * plan_.width + plan_.outputs[o]].value, known.error, known.slack};
  }

 private:
  Bounded& at(int i, int column) { return state_[i * plan_.width + column]; }

  void compute(const PlannedLayer& layer) {
    std::vector<Bounded> units(layer.units.size());
    for (int i = 0; i < nodes_; ++i) {
      for (size_t u = 0; u < units.size(); ++u) {
        Dot dot;
        for (const auto& [term, factor] : layer.units[u]) add_term(dot, layer, i, term, factor);
        units[u] = dot.finish(roundoff_);
        // Surely below zero is exactly zero: so a selection is shut.
        if (units[u].value + units[u].error + units[u].inherited < 0) units[u] = {};
        units[u].value = std::max(0.0, units[u].value);
      }
      for (int column = 0; column < plan_.width; ++column) {
        Dot dot;
        for (const auto& [unit, factor] : layer.columns[column]) dot.add(factor, units[unit]);
        next_[i * plan_.width + column] = dot.finish(roundoff_);
      }
    }
    std::swap(state_, next_);
  }

  void add_term(Dot& dot, const PlannedLayer& layer, int i, int term, double factor) {
    if (term < plan_.width) return dot.add(factor, at(i, term));
    const int place = term - plan_.width, head = place / plan_.head_size();
    const PlannedHead& from = layer.heads[head];
    const int column = from.columns[place % plan_.head_size()];
    if (i + 1 == nodes_) return;  // the scratch processor reads itself: zero
    if (from.route.is_scored()) {
      const auto to = [&](int j) { return at(j, from.scored.destination).value; };
      return dot.add(factor, at(sender(i, to), column));
    }
    if (!from.route.is_weighted()) return dot.add(factor, at(from.route.sources[i], column));
    const auto& row = from.route.weighted[i];
    for (const auto& [j, weight] : row) {
      const Bounded& x = at(j, column);
      // The scratch processor may have the rest of the row.
      const double size = x.magnitude();
      // Weights and scales of whole numbers are stored exactly; others are rounded when stored.
      const bool stored = !dense_ && storage_error(weight) == 0 && storage_error(factor) == 0;
      const double of_weight = dense_ ? dense_weight_error(weight, row.size() + 1) : float_roundoff;
      const double own = stored ? 0 : (of_weight + float_roundoff) * size;
      // Each product with one of the two is rounded.
      dot.add(factor * weight, x, own, 2 * roundoff_ * size);
    }
  }

  // The words after the round from those before: what the local function makes of their errors.
  void inherit(const Round& round) {
    next_known_ = known_;
    std::vector<Known> results(round.instructions.size());
    for (int i = 0; i + 1 < nodes_; ++i) {
      for (size_t k = 0; k < results.size(); ++k) {
        results[k] = passed_on(round, round.instructions[k], i, results);
      }
      for (const Update& update : round.updates) {
        next_known_[i * words_ + update.word] = results[update.instruction];
      }
    }
    std::swap(known_, next_known_);
  }

  Known passed_on(const Round& round, const Instruction& instruction, int i,
                  const std::vector<Known>& results) const {
    if (instruction.kind == Operator::Kind::word) return known_[i * words_ + instruction.index];
    if (instruction.kind == Operator::Kind::received) {
      return received(round.receives[instruction.index], i);
    }
    double values[most_operands], errors[most_operands], slack[most_operands], size = 0;
    for (size_t k = 0; k < instruction.operands.size(); ++k) {
      values[k] = results[instruction.operands[k]].value;
      errors[k] = results[instruction.operands[k]].error;
      slack[k] = results[instruction.operands[k]].slack;
      size += std::abs(values[k]);
    }
    const Operation& row = operation(instruction.kind);
    const double value = row.value(instruction, values);
    // Without what a table is off by itself.
    constexpr double exact[most_operands] = {};
    const double passed =
        row.error(instruction, values, slack) - row.error(instruction, values, exact);
    // What a choice leaves out may be no number, but is not rounded either.
    const double own =
        row.roundings == 0 ? 0 : row.roundings * slack_of_one * std::max(size, std::abs(value));
    return {value, row.error(instruction, values, errors), std::max(0.0, passed) + own};
  }

  // The processor whose destination is i, or the scratch processor.
  template <class Destination>
  int sender(int i, const Destination& of) const {
    int j = 0;
    while (j + 1 < nodes_ && of(j) != i) ++j;
    return j;
  }

  Known received(const Receive& receive, int i) const {
    const auto known = [&](int32_t j) { return known_[j * words_ + receive.word]; };
    if (receive.route.is_scored()) {
      const auto to = [&](int j) { return known_[j * words_ + receive.route.destination].value; };
      return known(sender(i, to));
    }
    if (!receive.route.is_weighted()) return known(receive.route.sources[i]);
    Known sum;
    double size = 0;
    for (const auto& [j, weight] : receive.route.weighted[i]) {
      sum.value += weight * known(j).value;
      sum.error += std::abs(weight) * known(j).error;
      sum.slack += std::abs(weight) * known(j).slack;
      size += std::abs(weight * known(j).value);
    }
    const auto terms = static_cast<double>(receive.route.weighted[i].size());
    sum.slack += terms * slack_of_one * size;
    return sum;
  }

  // The interpreter rounds once; a comparator that the compiler adds up has three sums.
  static constexpr double slack_of_one = 4 * double_roundoff;

  const NetworkPlan& plan_;
  double roundoff_;
  bool dense_;
  int nodes_;
  size_t words_;
  std::vector<Bounded> state_, next_;      // of the network's columns
  std::vector<Known> known_, next_known_;  // of words, [nodes, words]
};

}  // namespace

BoundedOutputs bounded_run(const NetworkPlan& plan, const double* input, double roundoff,
                           bool dense) {
  Run run(plan, roundoff, dense);
  run.start(input);
  for (size_t layer = 0; layer < plan.layers.size();) layer = run.step(layer);
  BoundedOutputs outputs;
  for (int i = 0; i < plan.program.processors; ++i) {
    for (size_t o = 0; o < plan.outputs.size(); ++o) {
      outputs.values.push_back(run.output(i, o).value);
      outputs.bounds.push_back(run.output(i, o).error);
      outputs.slack.push_back(run.output(i, o).slack);
    }
  }
  return outputs;
}

}  // namespace posattn
