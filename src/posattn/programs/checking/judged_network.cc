#include "posattn/programs/checking/judged_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "posattn/base/error.h"
#include "posattn/model/inference.h"
#include "posattn/programs/checking/rounding.h"

namespace posattn {
namespace {

// The task's answer has been computed in double and is rounded once to fp32.
double task_slack(double answer) {
  constexpr double steps = 4096;
  return (float_roundoff + steps * double_roundoff) * std::abs(answer);
}

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
  // Written so that what is no number is wrong.
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

}  // namespace posattn
