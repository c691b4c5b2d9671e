#include "posattn/programs/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "posattn/base/error.h"
#include "posattn/base/random.h"
#include "posattn/evaluation/predict.h"
#include "posattn/model/network.h"
#include "posattn/programs/network_plan.h"
#include "posattn/programs/rounding.h"
#include "posattn/tasks/task.h"

namespace posattn {
namespace {

class Verifier {
 public:
  explicit Verifier(const VerifyRequest& request)
      : request_(request),
        program_(*request.program),
        processors_(request.program->processors),
        plan_(plan_network(*request.program)),
        network_(request.model->spec,
                 {.path = path_for(*request.model), .threads = request.threads}) {
    const ModelSpec& spec = request.model->spec;
    if (spec.real_nodes != processors_ || spec.data_columns != 1 || spec.output_columns != 1) {
      throw Error(
          ExitCode::data,
          fmt::format("a model of {} nodes for program '{}'", spec.real_nodes, program_.name),
          fmt::format("{} nodes with one number each", processors_));
    }
    for (const Task* task : tasks()) {
      if (task->name() == program_.task) task_ = task;
    }
  }

  Verification run() {
    Verification result;
    for (const double c : request_.scales) {
      result.scales.push_back(verify_scale(c, result.counter_example));
    }
    return result;
  }

 private:
  // What one input shows.
  struct Judgement {
    bool wrong = false;
    bool by_task = false;  // wrong against the task's answer
    std::vector<double> expected, bounds;
  };

  ScaleVerification verify_scale(double c, std::optional<CounterExample>& example) {
    ScaleVerification result;
    result.c = c;
    result.samples = request_.samples;
    const std::vector<float> inputs = draw(c);
    const std::vector<float> outputs = forward(inputs);
    double squared = 0;
    int64_t mismatches = 0;
    double largest_error = 0, largest_bound = 0;
    int64_t first_wrong = result.samples;
#pragma omp parallel for num_threads(request_.threads) schedule(static) \
    reduction(+ : squared, mismatches) reduction(max : largest_error, largest_bound) \
    reduction(min : first_wrong)
    for (int64_t s = 0; s < result.samples; ++s) {
      const float* input = inputs.data() + s * processors_;
      const float* output = outputs.data() + s * processors_;
      const Judgement judgement = judge(input, output);
      for (int i = 0; i < processors_; ++i) {
        const double error = std::abs(output[i] - judgement.expected[i]);
        // Written so that a NaN counts as the worst.
        largest_error = error <= largest_error ? largest_error : error;
        largest_bound = std::max(largest_bound, judgement.bounds[i]);
      }
      squared += squared_error(input, output, judgement.expected);
      if (judgement.wrong) {
        ++mismatches;
        first_wrong = std::min(first_wrong, s);
      }
    }
    result.mismatches = mismatches;
    result.largest_error = largest_error;
    result.largest_bound = largest_bound;
    result.mse = squared / static_cast<double>(result.samples * processors_);
    if (mismatches > 0 && !example) {
      const float* input = inputs.data() + first_wrong * processors_;
      example = simplified({input, input + processors_}, c);
    }
    return result;
  }

  std::vector<float> draw(double c) const {
    std::vector<float> inputs(request_.samples * processors_);
    const WordType& type = program_.words[program_.input].type;
    const double range = request_.model->origin.range;
    for (int64_t s = 0; s < request_.samples; ++s) {
      RandomStream random(request_.seed, Purpose::evaluation_data,
                          static_cast<uint32_t>(std::lround(c * 1000)), static_cast<uint32_t>(s));
      float* input = inputs.data() + s * processors_;
      if (type.is_real()) {
        draw_values(random, test_range(range, c, false), processors_, input);
      } else {  // integers know no scale
        for (int i = 0; i < processors_; ++i) {
          const double width = static_cast<double>(type.high - type.low) + 1;
          const double drawn = static_cast<double>(type.low) + std::floor(random.uniform() * width);
          input[i] = static_cast<float>(std::min(drawn, static_cast<double>(type.high)));
        }
      }
    }
    return inputs;
  }

  std::vector<float> forward(const std::vector<float>& inputs) {
    std::vector<float> outputs(inputs.size());
    const Batch batch{.inputs = inputs.data(),
                      .samples = static_cast<int64_t>(inputs.size()) / processors_,
                      .real_nodes = processors_};
    network_.forward(request_.model->parameters, batch, outputs.data());
    return outputs;
  }

  std::vector<float> answer(const float* input) const {
    std::vector<float> target(processors_);
    task_->solve(program_.length, input, target.data());
    return target;
  }

  Judgement judge(const float* input, const float* output) const {
    const std::vector<double> exact(input, input + processors_);
    Judgement judgement;
    judgement.expected = run_static<double>(program_, exact, 1);
    judgement.bounds = bounded_run(plan_, exact.data(), float_roundoff).bounds;
    const bool whole = !program_.words[program_.output].type.is_real();
    if (whole) std::ranges::fill(judgement.bounds, 0);
    const auto is_outside = [&](double expected, int i) {
      return !(std::abs(output[i] - expected) <= judgement.bounds[i] + interpreter_slack(expected));
    };
    for (int i = 0; i < processors_; ++i) {
      if (is_outside(judgement.expected[i], i)) judgement.wrong = true;
    }
    if (judgement.wrong || !task_) return judgement;
    const std::vector<float> target = answer(input);
    for (int i = 0; i < processors_; ++i) {
      const double half_digit = float_roundoff * std::abs(target[i]);  // the answer is rounded once
      if (!task_->counts(program_.length, i, 0)) continue;
      if (std::abs(output[i] - target[i]) <=
          judgement.bounds[i] + half_digit + interpreter_slack(target[i])) {
        continue;
      }
      judgement.wrong = judgement.by_task = true;
    }
    if (judgement.by_task) judgement.expected.assign(target.begin(), target.end());
    return judgement;
  }

  // The interpreter itself rounds, in double.
  static double interpreter_slack(double expected) {
    constexpr double steps = 4096;
    return steps * double_roundoff * std::abs(expected);
  }

  double squared_error(const float* input, const float* output,
                       const std::vector<double>& expected) const {
    double sum = 0;
    std::vector<double> target = expected;
    if (task_) {
      const std::vector<float> exact = answer(input);
      target.assign(exact.begin(), exact.end());
    }
    for (int i = 0; i < processors_; ++i) {
      if (task_ && !task_->counts(program_.length, i, 0)) continue;
      sum += (output[i] - target[i]) * (output[i] - target[i]);
    }
    return sum;
  }

  bool is_wrong(const std::vector<float>& input) {
    return judge(input.data(), forward(input).data()).wrong;
  }

  // Takes away numbers and digits as long as the model stays wrong.
  CounterExample simplified(std::vector<float> input, double c) {
    const WordType& type = program_.words[program_.input].type;
    const auto allowed = [&](float x) {
      return type.is_real() ||
             (x >= static_cast<float>(type.low) && x <= static_cast<float>(type.high));
    };
    for (int i = 0; i < processors_; ++i) {
      for (const float simpler :
           {0.0f, 1.0f, std::round(input[i]), std::round(input[i] * 10) / 10}) {
        if (simpler == input[i] || !allowed(simpler)) continue;
        std::vector<float> candidate = input;
        candidate[i] = simpler;
        if (!is_wrong(candidate)) continue;
        input = std::move(candidate);
        break;
      }
    }
    const std::vector<float> output = forward(input);
    const Judgement judgement = judge(input.data(), output.data());
    CounterExample example;
    example.c = c;
    example.input.assign(input.begin(), input.end());
    example.found.assign(output.begin(), output.end());
    example.expected = judgement.expected;
    example.bounds = judgement.bounds;
    example.against = judgement.by_task ? "task " + program_.task : "the program";
    return example;
  }

  const VerifyRequest& request_;
  const StaticProgram& program_;
  int processors_;
  NetworkPlan plan_;
  Network network_;
  const Task* task_ = nullptr;
};

}  // namespace

Verification verify(const VerifyRequest& request) { return Verifier(request).run(); }

}  // namespace posattn
