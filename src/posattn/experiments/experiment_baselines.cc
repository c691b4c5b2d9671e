#include "posattn/experiments/experiment_baselines.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "posattn/evaluation/baselines.h"
#include "posattn/model/inference.h"
#include "posattn/programs/language/library.h"
#include "posattn/programs/lowering/compile.h"
#include "posattn/tasks/k_hop.h"

namespace posattn {
namespace {

// Compiled anew only for another length: samples of one length follow each other.
class CompiledProgram {
 public:
  CompiledProgram(std::string name, Settings settings)
      : name_(std::move(name)), settings_(std::move(settings)) {}

  // One sample; every processor has one answer.
  void run(int length, std::span<const float> inputs, std::span<float> outputs) {
    if (length != length_) {
      network_.emplace(compile(library_program(name_, length, settings_)));
      length_ = length;
    }
    network_->run({.inputs = inputs, .samples = 1, .real_nodes = static_cast<int>(outputs.size())},
                  outputs);
  }

 private:
  std::string name_;
  Settings settings_;
  int length_ = 0;
  std::optional<Inference> network_;
};

template <class Predict>
Baseline compiled(Predict predict) {
  return {.name = std::string(compiled_baseline),
          .description = "the exact network that posattn compiles",
          .predict = std::move(predict)};
}

// The program's words are letters from 1 on and k; its answer 0 means undefined. The number of
// hops, which is the sample's first token, is no processor.
Baseline compiled_k_hop(const KHopSetting& setting) {
  const auto program = std::make_shared<CompiledProgram>(
      "k-hop", Settings{{"K", setting.most_hops}, {"q", 2 * setting.letters}});
  const auto predict = [program, setting](int length, const SampleView& sample,
                                          std::span<float> outputs) {
    const int first = setting.letter(0, false), places = length - 1;
    std::vector<float> words, answers(places);
    for (const int32_t token : sample.tokens.subspan(1)) {
      words.push_back(static_cast<float>(token - first + 1));
      words.push_back(static_cast<float>(sample.tokens[0]));
    }
    program->run(places, words, answers);
    std::ranges::fill(outputs, 0.0F);
    for (int i = 0; i < places; ++i) {
      const int answer = static_cast<int>(std::lround(answers[i]));
      const int label = answer == 0 ? setting.undefined() : first + answer - 1;
      outputs[static_cast<size_t>(i + 1) * setting.vocabulary + label] = 1;
    }
  };
  return compiled(predict);
}

// Values in, values out.
Baseline compiled_numbers(const std::string& task) {
  const auto program = std::make_shared<CompiledProgram>(task, Settings{});
  const auto predict = [program](int length, const SampleView& sample, std::span<float> outputs) {
    program->run(length, sample.values, outputs);
  };
  return compiled(predict);
}

}  // namespace

Baseline find_experiment_baseline(const Task& task, std::string_view name) {
  const std::string program(task.name());
  std::vector<Baseline> more;
  if (const KHopSetting* setting = k_hop_setting(program)) {
    more.push_back(compiled_k_hop(*setting));
  } else if (std::ranges::find(library_programs(), program, &LibraryProgram::name) !=
             library_programs().end()) {
    more.push_back(compiled_numbers(program));
  }
  return find_baseline(task, name, std::move(more));
}

}  // namespace posattn
