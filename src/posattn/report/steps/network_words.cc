#include "posattn/report/steps/network_words.h"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "posattn/base/error.h"
#include "posattn/model/activations.h"
#include "posattn/programs/lowering/network_plan.h"

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
    for (size_t w = 0; w < program.words.size(); ++w) {
      word_named_.emplace(program.words[w].name, static_cast<int>(w));
    }
  }

  std::string at_start(std::span<const double> values) const {
    Difference worst;
    for (size_t w = 0; w < plan_.start.size(); ++w) {
      if (plan_.start[w] >= 0) compare(0, plan_.start[w], static_cast<int>(w), values, worst);
    }
    return text_of("encoder", worst);
  }

  std::string after_round(int round, std::span<const double> values) const {
    std::vector<int> layers;
    for (size_t k = 0; k < plan_.layers.size(); ++k) {
      if (plan_.layers[k].round == round) layers.push_back(static_cast<int>(k));
    }
    if (layers.empty()) return "no layer: the output does not need this round";
    Difference worst;
    const std::vector<int>& words = plan_.layers[layers.back()].words;
    for (size_t column = 0; column < words.size(); ++column) {
      if (words[column] < 0) continue;
      compare(layers.back() + 1, static_cast<int>(column), words[column], values, worst);
    }
    return text_of(layers.size() == 1
                       ? fmt::format("layer {}", layers.front())
                       : fmt::format("layers {} to {}", layers.front(), layers.back()),
                   worst);
  }

 private:
  struct Difference {
    int compared = 0, word = 0, processor = 0;
    double largest = 0;
  };

  // As `compile` planned it: the file says the sizes.
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

  // A word of the plan in a column after so many layers; the plan's own words are not the
  // program's.
  void compare(int layers, int column, int planned_word, std::span<const double> values,
               Difference& worst) const {
    const auto word = word_named_.find(plan_.program.words[planned_word].name);
    if (word == word_named_.end()) return;
    ++worst.compared;
    for (int i = 0; i < program_.processors; ++i) {
      const double expected = values[i * program_.words.size() + word->second];
      const double difference = std::abs(found_.state(layers, i, column) - expected);
      // Written so that a NaN is the largest.
      if (difference <= worst.largest || std::isnan(worst.largest)) continue;
      worst = {worst.compared, word->second, i, difference};
    }
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
  std::map<std::string, int> word_named_;
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
