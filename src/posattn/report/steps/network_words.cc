#include <fmt/format.h>

#include <cmath>

#include "posattn/base/error.h"
#include "posattn/model/hooks.h"
#include "posattn/programs/lowering/network_plan.h"
#include "posattn/report/steps/walk.h"

namespace posattn {
namespace {

// Where the network holds the program's words, and how far its numbers are from them.
class NetworkWords {
 public:
  NetworkWords(const Model& model, const StaticProgram& program, std::span<const double> input)
      : program_(program), plan_(plan_for(model, program)) {
    const std::vector<float> row(input.begin(), input.end());
    found_ = activations_of(model.spec, model.parameters,
                            {.inputs = row, .samples = 1, .real_nodes = program.processors});
  }

  std::string at_start(std::span<const double> values) const {
    return text_of("encoder", largest_difference(held_words(plan_, -1), values));
  }

  std::string after_round(int round, std::span<const double> values) const {
    const HeldWords held = held_words(plan_, round);
    if (held.layers.empty()) return "no layer: the output does not need this round";
    return text_of(held.layers.size() == 1
                       ? fmt::format("layer {}", held.layers.front())
                       : fmt::format("layers {} to {}", held.layers.front(), held.layers.back()),
                   largest_difference(held, values));
  }

 private:
  struct Difference {
    int compared = 0, word = 0, processor = 0;
    double largest = 0;
  };

  // The plan that `compile` made: the file says the sizes.
  static NetworkPlan plan_for(const Model& model, const StaticProgram& program) {
    const ModelSpec& spec = model.spec;
    const Error other(ExitCode::data,
                      fmt::format("a network of {} nodes, {} layers and width {} for program '{}'",
                                  spec.real_nodes, spec.depth, spec.width, program.name),
                      "the network that the program is compiled to",
                      "compile the program again; posattn verify checks the outputs alone");
    if (spec.real_nodes != program.processors ||
        spec.data_columns != static_cast<int>(program.inputs.size()) ||
        spec.output_columns != static_cast<int>(program.outputs.size()) || spec.vocabulary != 0) {
      throw other;
    }
    try {
      return plan_network(program, {.width = spec.width,
                                    .heads = spec.heads,
                                    .hidden = spec.mlp_width,
                                    .depth = spec.depth});
    } catch (const Error&) {
      throw other;
    }
  }

  // The plan's words are the program's, and after them its own.
  Difference largest_difference(const HeldWords& held, std::span<const double> values) const {
    Difference worst;
    const size_t words = program_.words.size();
    for (size_t w = 0; w < words; ++w) {
      if (held.columns[w] < 0) continue;
      ++worst.compared;
      for (int i = 0; i < program_.processors; ++i) {
        const double found = found_.state(held.depth, i, held.columns[w]);
        const double difference = std::abs(found - values[i * words + w]);
        // Written so that a NaN is the largest.
        if (difference <= worst.largest || std::isnan(worst.largest)) continue;
        worst = {worst.compared, static_cast<int>(w), i, difference};
      }
    }
    return worst;
  }

  std::string text_of(const std::string& where, const Difference& worst) const {
    if (worst.compared == 0) return where;
    if (worst.largest == 0) return where + ": the network holds the same numbers";
    return fmt::format("{}: the network differs by at most {:.2g} ({} of processor {})", where,
                       worst.largest, program_.words[worst.word].name, worst.processor);
  }

  const StaticProgram& program_;
  NetworkPlan plan_;
  Activations found_;
};

}  // namespace

void compare_with_network(const Model& model, const StaticProgram& program,
                          std::span<const double> input, Walk& walk) {
  const NetworkWords network(model, program, input);
  for (size_t k = 0; k < walk.steps.size(); ++k) {
    WalkStep& step = walk.steps[k];
    step.notes.push_back(k == 0 ? network.at_start(step.values)
                                : network.after_round(static_cast<int>(k) - 1, step.values));
  }
  walk.facts.push_back(
      fmt::format("{} rounds in {} layers", program.rounds.size(), model.spec.depth));
}

}  // namespace posattn
