#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "posattn/evaluation/evaluate.h"
#include "posattn/experiments/curves.h"
#include "posattn/model/inference.h"
#include "posattn/programs/language/language.h"
#include "posattn/programs/lowering/compile.h"
#include "posattn/tasks/k_hop.h"
#include "posattn/training/run.h"

namespace posattn {
namespace {

double value_at(const Experiment& experiment, const Baseline& baseline, const RunConfig& config,
                double test_x) {
  const EvaluationAxis& axis = experiment.axis.test_axis;
  const RunState untrained(std::make_shared<const ParameterLayout>(model_spec(config)));
  const Model model = trained_model(config, untrained);
  EvaluationRequest request = test_request(config, model);
  request.axis = &axis;
  const std::vector<Measurement> rows =
      baseline_rows(baseline, *request.task, axis.samples(request, test_x), axis.name, test_x,
                    {model.spec.heads, length_of(model)});
  return find_value(rows, {.axis = axis.name, .x = test_x, .metric = experiment.metric->name})
      .value();
}

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

Curve baseline_curve(const Experiment& experiment, const std::string& task,
                     const std::string& baseline, const std::vector<uint64_t>& seeds) {
  const Baseline predictor =
      find_experiment_baseline(find_task(task, experiment.settings.task_set), baseline);
  // An exact network is the same for every seed, so it is evaluated once: its hundreds of layers
  // are slow.
  const bool is_compiled = baseline == compiled_baseline;
  const auto tested =
      std::span(seeds).first(is_compiled ? std::min<size_t>(1, seeds.size()) : seeds.size());
  const ExperimentAxis& axis = experiment.axis;
  Curve curve{.task = task, .line = baseline, .split = Split::test, .points = {}};
  for (const double x : axis.values) {
    RunConfig config = experiment.settings;
    config.task = task;
    if (is_compiled) config.test_samples = std::min<int64_t>(100, config.test_samples);
    if (!axis.is_tested()) set_field(config, axis.key, fmt::format("{}", x));
    CurvePoint point{.x = x, .runs = {}};
    for (const uint64_t seed : tested) {
      config.seed = static_cast<int64_t>(seed);
      point.runs.emplace_back(
          seed, value_at(experiment, predictor, config, axis.is_tested() ? x : axis.test_x));
    }
    curve.points.push_back(std::move(point));
  }
  return curve;
}

Baseline find_experiment_baseline(const Task& task, std::string_view name) {
  const std::string program(task.name());
  std::vector<Baseline> more;
  if (const KHopSetting* setting = k_hop_setting(program)) {
    more.push_back(compiled_k_hop(*setting));
  } else if (std::ranges::any_of(library_programs(), [&](const LibraryProgram& one) {
               return one.name == program &&
                      library_program(program, task.shortest_length()).task == program;
             })) {
    more.push_back(compiled_numbers(program));
  }
  return find_baseline(task, name, std::move(more));
}

}  // namespace posattn
