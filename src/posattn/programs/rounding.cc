#include "posattn/programs/rounding.h"

#include <algorithm>
#include <cmath>

namespace posattn {
namespace {

struct Bounded {
  double value = 0, error = 0;
};

// A sum of products, its terms added one by one.
class Dot {
 public:
  void add(double weight, const Bounded& x) {
    sum_.value += weight * x.value;
    sum_.error += std::abs(weight) * x.error;
    size_ += std::abs(weight) * (std::abs(x.value) + x.error);
    ++terms_;
  }
  Bounded finish(double roundoff) const {
    const double ku = terms_ * roundoff;
    // Adding a zero and multiplying by one are exact, so a lone unit weight is not rounded; the
    // bound is simple rather than sharp.
    return {sum_.value, sum_.error + (terms_ > 1 ? ku / (1 - ku) * size_ : roundoff * size_)};
  }

 private:
  Bounded sum_;
  double size_ = 0;
  int terms_ = 0;
};

class Run {
 public:
  Run(const NetworkPlan& plan, double roundoff)
      : plan_(plan),
        roundoff_(roundoff),
        nodes_(plan.program.processors + 1),
        state_(nodes_ * plan.width),
        next_(state_.size()) {}

  void start(const double* input) {
    for (int i = 0; i + 1 < nodes_; ++i) {
      for (size_t w = 0; w < plan_.start.size(); ++w) {
        if (plan_.start[w] < 0) continue;
        const auto& initial = plan_.program.words[w].initial;
        const bool is_input = static_cast<int>(w) == plan_.program.input;
        const double value = is_input ? input[i] : initial.empty() ? 0 : initial[i];
        at(i, plan_.start[w]) = {value, is_input ? 0 : roundoff_ * std::abs(value)};
      }
    }
  }

  void step(const PlannedLayer& layer) {
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

  const Bounded& output(int i) const { return state_[i * plan_.width + plan_.output]; }

 private:
  Bounded& at(int i, int column) { return state_[i * plan_.width + column]; }

  void add_term(Dot& dot, const PlannedLayer& layer, int i, int term, double factor) {
    if (term < plan_.width) return dot.add(factor, at(i, term));
    const int place = term - plan_.width, head = place / plan_.head_size();
    const PlannedHead& from = layer.heads[head];
    const int column = from.columns[place % plan_.head_size()];
    if (i + 1 == nodes_) return;  // the scratch processor hears itself: zero
    if (!from.route.is_weighted()) return dot.add(factor, at(from.route.sources[i], column));
    for (const auto& [j, weight] : from.route.weighted[i]) {
      Bounded x = at(j, column);
      x.error += 3 * roundoff_ * std::abs(x.value);  // the weight is rounded, and so is the product
      dot.add(factor * weight, x);
    }
  }

  const NetworkPlan& plan_;
  double roundoff_;
  int nodes_;
  std::vector<Bounded> state_, next_;
};

}  // namespace

BoundedOutputs bounded_run(const NetworkPlan& plan, const double* input, double roundoff) {
  Run run(plan, roundoff);
  run.start(input);
  for (const PlannedLayer& layer : plan.layers) run.step(layer);
  BoundedOutputs outputs;
  for (int i = 0; i < plan.program.processors; ++i) {
    outputs.values.push_back(run.output(i).value);
    outputs.bounds.push_back(run.output(i).error);
  }
  return outputs;
}

}  // namespace posattn
