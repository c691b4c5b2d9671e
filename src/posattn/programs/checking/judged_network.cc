#include "posattn/programs/checking/judged_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "posattn/base/error.h"
#include "posattn/base/text.h"
#include "posattn/model/inference.h"
#include "posattn/programs/checking/rounding.h"
#include "posattn/programs/lowering/compile.h"

namespace posattn {
namespace {

// The task's answer has been computed in double and is rounded once to fp32.
double task_slack(double answer) {
  constexpr double steps = 4096;
  return (float_roundoff + steps * double_roundoff) * std::abs(answer);
}

// The sharpness that `compile` notes in the file: "dense sharpness 1024".
double noted_sharpness(const Model& model) {
  constexpr std::string_view before = "dense sharpness ";
  const auto note = model.origin.notes.find("compiled");
  if (note == model.origin.notes.end() || !note->second.starts_with(before)) {
    return CompileOptions{}.sharpness;
  }
  return parse_number(note->second.substr(before.size()), "metadata compiled");
}

// Nothing where the network is too small for the program.
std::optional<Model> compiled_again(const Model& model, const RoutedProgram& routed) {
  const ModelSpec& spec = model.spec;
  try {
    const NetworkPlan smallest = plan_network(routed.program);
    if (spec.width < smallest.width || spec.heads < smallest.heads ||
        spec.mlp_width < smallest.hidden || spec.depth < static_cast<int>(smallest.layers.size())) {
      return std::nullopt;
    }
    CompileOptions options;
    options.dense = !spec.routed();
    options.sharpness = noted_sharpness(model);
    const PlanSizes sizes = {spec.width, spec.heads, spec.mlp_width, spec.depth};
    return compile(plan_network(routed.program, sizes), options);
  } catch (const Error& error) {  // the file's fault
    throw error.as(ExitCode::data);
  }
}

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

JudgedNetwork::JudgedNetwork(const VerifyRequest& request)
    : request_(request),
      program_(*request.program),
      processors_(request.program->processors),
      input_count_(processors_ * static_cast<int>(request.program->inputs.size())),
      output_count_(processors_ * static_cast<int>(request.program->outputs.size())),
      routed_(route_messages(*request.program, request.routing)),
      plan_(plan_network(routed_.program)),
      network_(request.model->spec,
               {.path = path_for(*request.model), .threads = request.threads}) {
  const ModelSpec& spec = request.model->spec;
  if (spec.real_nodes != processors_ ||
      spec.data_columns != static_cast<int>(routed_.program.inputs.size()) ||
      spec.output_columns * spec.real_nodes != output_count_) {
    throw Error(ExitCode::data,
                fmt::format("a model of {} nodes with {} numbers in and {} out for program '{}'",
                            spec.real_nodes, spec.data_columns, spec.output_columns, program_.name),
                fmt::format("{} nodes with {} in and {} out", processors_,
                            routed_.program.inputs.size(), program_.outputs.size()));
  }
  if (request.in_double && !spec.routed()) {
    throw Error(ExitCode::configuration, "a dense model in double precision", "attention as routes",
                "compile the program without --dense");
  }
  if (request.in_double) {
    in_double_.emplace(spec, request.model->parameters);
  } else {
    network_.prepare(request.model->parameters, processors_);
  }
  definition_ = find_definition(program_.task);
  for (const Task* task : tasks()) {
    if (definition_ == nullptr && task->name() == program_.task) task_ = task;
  }
}

int64_t JudgedNetwork::work() const {
  const ModelSpec& spec = request_.model->spec;
  return int64_t{1} * spec.nodes() * (spec.width + spec.mlp_width) * (spec.depth + 1);
}

std::vector<double> JudgedNetwork::forward(const std::vector<float>& inputs) {
  const auto samples = static_cast<int64_t>(inputs.size()) / input_count_;
  const std::vector<float> given = routed_inputs<float>(program_, routed_, inputs, samples);
  if (in_double_) {
    const std::vector<double> wide(given.begin(), given.end());
    std::vector<double> outputs(samples * output_count_);
    in_double_->forward(wide.data(), samples, outputs.data(), request_.threads);
    return outputs;
  }
  std::vector<float> outputs(samples * output_count_);
  network_.run({.inputs = given, .samples = samples, .real_nodes = processors_}, outputs);
  return {outputs.begin(), outputs.end()};
}

std::vector<float> JudgedNetwork::answer(const float* input) const {
  std::vector<float> target(output_count_);
  if (definition_ != nullptr) {
    const std::vector<double> exact(input, input + input_count_);
    std::ranges::transform(definition_->answer(processors_, exact), target.begin(),
                           [](double x) { return static_cast<float>(x); });
    return target;
  }
  task_->solve(program_.length, std::span(input, input_count_), target);
  return target;
}

Judgement JudgedNetwork::judge(const float* input, const double* output) const {
  const std::vector<double> exact(input, input + input_count_);
  Judgement judgement;
  judgement.expected = run_static<double>(program_, exact, 1);
  allow_errors(exact, judgement);
  // Written so that NaN counts as wrong.
  const auto is_within = [&](int i, double expected, double more) {
    return std::abs(output[i] - expected) <= judgement.bounds[i] + judgement.slack[i] + more;
  };
  for (int i = 0; i < output_count_; ++i) {
    if (!is_within(i, judgement.expected[i], 0)) judgement.wrong = true;
  }
  if (judgement.wrong || !has_answer()) return judgement;
  const std::vector<float> target = answer(input);
  for (int i = 0; i < output_count_; ++i) {
    if (!counts(i) || is_within(i, target[i], task_slack(target[i]))) continue;
    judgement.wrong = judgement.by_task = true;
  }
  if (judgement.by_task) judgement.expected.assign(target.begin(), target.end());
  return judgement;
}

std::vector<double> JudgedNetwork::target(const float* input, const Judgement& judgement) const {
  if (!has_answer() || in_double_) return judgement.expected;
  const std::vector<float> exact = answer(input);
  return {exact.begin(), exact.end()};
}

bool JudgedNetwork::counts(int output) const {
  const auto columns = static_cast<int>(program_.outputs.size());
  return !task_ || task_->counts(program_.length, output / columns, output % columns);
}

void JudgedNetwork::allow_errors(const std::vector<double>& input, Judgement& judgement) const {
  judgement.bounds.assign(output_count_, 0);
  judgement.slack.assign(output_count_, 0);
  const auto is_real = [&](int word) { return program_.words[word].type.is_real(); };
  if (std::ranges::none_of(program_.outputs, is_real)) return;
  const double roundoff = in_double_ ? double_roundoff : float_roundoff;
  const std::vector<double> given = routed_inputs<double>(program_, routed_, input, 1);
  const bool dense = !request_.model->spec.routed();
  const BoundedOutputs bounded = bounded_run(plan_, given.data(), roundoff, dense);
  for (int i = 0; i < output_count_; ++i) {
    if (!is_real(program_.outputs[i % program_.outputs.size()])) continue;
    judgement.bounds[i] = bounded.bounds[i];
    judgement.slack[i] = bounded.slack[i];
  }
}

std::string difference_from_compiled(const Model& model, const RoutedProgram& routed) {
  const std::optional<Model> again = compiled_again(model, routed);
  if (!again) return "a network that is too small for it";
  const Model& compiled = *again;
  if (model.origin.range != compiled.origin.range) {
    throw Error(ExitCode::data,
                fmt::format("a compiled model with the training range {}", model.origin.range),
                fmt::format("{}, as `posattn compile` writes it", compiled.origin.range),
                "compile the program again");
  }
  return difference_between(model, compiled);
}

std::string difference_between(const Model& model, const Model& compiled) {
  if (model.spec != compiled.spec) return "other settings of the network";
  std::string first;
  int64_t numbers = 0, tensors = 0;
  for (const TensorInfo& info : compiled.parameters.layout().tensors()) {
    const auto ours = model.parameters[info.name], theirs = compiled.parameters[info.name];
    int64_t differ = 0;
    for (size_t k = 0; k < theirs.size(); ++k) differ += !(ours[k] == theirs[k]);
    if (differ == 0) continue;
    numbers += differ;
    if (++tensors == 1) first = info.name;
  }
  if (tensors == 0) return "";
  return fmt::format("{} number{} of {}{}", numbers, numbers == 1 ? "" : "s", first,
                     tensors == 1 ? "" : fmt::format(" and {} more tensors", tensors - 1));
}

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
