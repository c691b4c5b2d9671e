#include "posattn/programs/checking/rounding.h"

#include <algorithm>
#include <cmath>

#include "posattn/programs/form/operation.h"

namespace posattn {
namespace {

struct Bounded {
  double value = 0, error = 0;
};

// What storing a weight in fp32 leaves.
double storage_error(double weight) {
  return std::abs(weight - static_cast<double>(static_cast<float>(weight)));
}

// A sum of products, its terms added one by one.
class Dot {
 public:
  void add(double weight, const Bounded& x, double own_error = 0) {
    sum_.value += weight * x.value;
    sum_.error += std::abs(weight) * (x.error + own_error) +
                  storage_error(weight) * (std::abs(x.value) + x.error);
    size_ += std::abs(weight) * (std::abs(x.value) + x.error);
    exact_ = exact_ && (weight == 0 || std::abs(weight) == 1);
    ++terms_;
  }
  Bounded finish(double roundoff) const {
    if (terms_ == 0 || (terms_ == 1 && exact_)) return sum_;
    const double ku = terms_ * roundoff;
    return {sum_.value, sum_.error + ku / (1 - ku) * size_};
  }

 private:
  Bounded sum_;
  double size_ = 0;
  int terms_ = 0;
  bool exact_ = true;
};

class Run {
 public:
  Run(const NetworkPlan& plan, double roundoff)
      : plan_(plan),
        roundoff_(roundoff),
        nodes_(plan.program.processors + 1),
        words_(plan.program.words.size()),
        state_(nodes_ * plan.width),
        next_(state_.size()),
        errors_(nodes_ * words_),
        next_errors_(errors_.size()) {}

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
        at(i, plan_.start[w]) = {value, 0};
        errors_[i * words_ + w] = is_input ? 0 : storage_error(value);  // a constant is a weight
      }
    }
  }

  // All layers of one round (or one layer that passes the result on).
  size_t step(size_t first) {
    const int number = plan_.layers[first].round;
    const bool is_round = number < static_cast<int>(plan_.program.rounds.size());
    for (Bounded& x : state_) x.error = 0;  // what is inherited goes through the program instead
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
      if (word < 0) continue;
      for (int i = 0; i < nodes_; ++i) errors_[i * words_ + word] += at(i, column).error;
    }
    return layer;
  }

  Bounded output(int i, size_t o) const {
    return {state_[i * plan_.width + plan_.outputs[o]].value,
            errors_[i * words_ + plan_.program.outputs[o]]};
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
    if (i + 1 == nodes_) return;  // the scratch processor hears itself: zero
    if (!from.route.is_weighted()) return dot.add(factor, at(from.route.sources[i], column));
    for (const auto& [j, weight] : from.route.weighted[i]) {
      const Bounded& x = at(j, column);
      // Weight and scale are stored, each product with one of them is rounded.
      dot.add(factor * weight, x, 2 * (float_roundoff + roundoff_) * std::abs(x.value));
    }
  }

  // The errors of the words after the round, from those before: what the local function passes on.
  void inherit(const Round& round) {
    next_errors_ = errors_;
    std::vector<double> results(round.instructions.size());
    for (int i = 0; i + 1 < nodes_; ++i) {
      for (size_t k = 0; k < results.size(); ++k) {
        results[k] = passed_on(round, round.instructions[k], i, results);
      }
      for (const Update& update : round.updates) {
        next_errors_[i * words_ + update.word] = results[update.instruction];
      }
    }
    std::swap(errors_, next_errors_);
  }

  double passed_on(const Round& round, const Instruction& instruction, int i,
                   const std::vector<double>& results) const {
    if (instruction.kind == Operator::Kind::word) return errors_[i * words_ + instruction.index];
    if (instruction.kind == Operator::Kind::received) {
      return heard(round.receives[instruction.index], i);
    }
    std::vector<double> operands;
    for (const int operand : instruction.operands) operands.push_back(results[operand]);
    return operation(instruction.kind).error(instruction, operands.data());
  }

  double heard(const Receive& receive, int i) const {
    const auto error_of = [&](int32_t j) { return errors_[j * words_ + receive.word]; };
    if (!receive.route.is_weighted()) return error_of(receive.route.sources[i]);
    double sum = 0;
    for (const auto& [j, weight] : receive.route.weighted[i]) sum += std::abs(weight) * error_of(j);
    return sum;
  }

  const NetworkPlan& plan_;
  double roundoff_;
  int nodes_;
  size_t words_;
  std::vector<Bounded> state_, next_;         // columns; errors of this round alone
  std::vector<double> errors_, next_errors_;  // of words, from all rounds; [nodes, words]
};

}  // namespace

BoundedOutputs bounded_run(const NetworkPlan& plan, const double* input, double roundoff) {
  Run run(plan, roundoff);
  run.start(input);
  for (size_t layer = 0; layer < plan.layers.size();) layer = run.step(layer);
  BoundedOutputs outputs;
  for (int i = 0; i < plan.program.processors; ++i) {
    for (size_t o = 0; o < plan.outputs.size(); ++o) {
      outputs.values.push_back(run.output(i, o).value);
      outputs.bounds.push_back(run.output(i, o).error);
    }
  }
  return outputs;
}

}  // namespace posattn
