#include <algorithm>
#include <cmath>

#include "posattn/base/error.h"
#include "posattn/programs/checking/judged_network.h"

namespace posattn {
namespace {

class Simplifier {
 public:
  Simplifier(JudgedNetwork& network, std::vector<float> input)
      : network_(network),
        input_(std::move(input)),
        left_(std::clamp<int64_t>(most_work / network.work(), fewest_tries, most_tries)) {}

  std::vector<float> run() {
    const auto count = static_cast<int>(input_.size());
    // Zeros first, in blocks that halve.
    for (int block = count; block >= 1 && left_ > 0; block /= 2) {
      for (int i = 0; i < count && left_ > 0; i += block) {
        try_instead(i, std::min(i + block, count), [](float) { return 0.0f; });
      }
    }
    for (int i = 0; i < count && left_ > 0; ++i) {
      if (input_[i] == 0 || input_[i] == 1) continue;
      const float before = input_[i];
      try_instead(i, i + 1, [](float) { return 1.0f; });
      if (input_[i] == before) try_instead(i, i + 1, [](float x) { return std::round(x); });
      if (input_[i] == before) {
        try_instead(i, i + 1, [](float x) { return std::round(x * 10) / 10; });
      }
    }
    return std::move(input_);
  }

 private:
  bool allowed(int i, float x) const {
    const StaticProgram& program = network_.program();
    const WordType& type = program.words[program.inputs[i % program.inputs.size()]].type;
    return type.is_real() ||
           (x >= static_cast<float>(type.low) && x <= static_cast<float>(type.high));
  }

  // Only what changes is copied and counts as a try.
  template <class Simpler>
  void try_instead(int first, int last, const Simpler& simpler) {
    std::vector<float> before(input_.begin() + first, input_.begin() + last);
    bool changed = false;
    for (int i = first; i < last; ++i) {
      const float x = simpler(input_[i]);
      if (x == input_[i] || !allowed(i, x)) continue;
      input_[i] = x;
      changed = true;
    }
    if (!changed) return;
    --left_;
    if (!is_wrong()) std::ranges::copy(before, input_.begin() + first);
  }

  bool is_wrong() {
    if (input_fault(network_.program(), std::vector<double>(input_.begin(), input_.end()))) {
      return false;
    }
    try {
      return network_.judge(input_.data(), network_.forward(input_).data()).wrong;
    } catch (const Error&) {  // an input on which the program has no value
      return false;
    }
  }

  // About two seconds of a processor.
  static constexpr int64_t most_work = 400'000'000, fewest_tries = 8, most_tries = 4000;

  JudgedNetwork& network_;
  std::vector<float> input_;
  int64_t left_;
};

}  // namespace

CounterExample simplified(JudgedNetwork& network, std::vector<float> input, double c) {
  input = Simplifier(network, std::move(input)).run();
  const std::vector<double> output = network.forward(input);
  Judgement judgement = network.judge(input.data(), output.data());
  return {.c = c,
          .input = {input.begin(), input.end()},
          .expected = std::move(judgement.expected),
          .found = output,
          .bounds = std::move(judgement.bounds),
          .against = network.judged_by(judgement)};
}

}  // namespace posattn
