#include "posattn/programs/checking/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>

#include "posattn/base/error.h"
#include "posattn/base/parallel.h"
#include "posattn/base/random.h"
#include "posattn/model/inference.h"
#include "posattn/model/network.h"
#include "posattn/model/routed_network.h"
#include "posattn/programs/checking/program_task.h"
#include "posattn/programs/checking/rounding.h"
#include "posattn/programs/form/definition.h"
#include "posattn/programs/lowering/network_plan.h"
#include "posattn/programs/messages/route_messages.h"
#include "posattn/tasks/task.h"

namespace posattn {
namespace {

class Verifier {
 public:
  explicit Verifier(const VerifyRequest& request)
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
      throw Error(
          ExitCode::data,
          fmt::format("a model of {} nodes with {} numbers in and {} out for program '{}'",
                      spec.real_nodes, spec.data_columns, spec.output_columns, program_.name),
          fmt::format("{} nodes with {} in and {} out", processors_, routed_.program.inputs.size(),
                      program_.outputs.size()));
    }
    if (request.in_double && !spec.routed) {
      throw Error(ExitCode::configuration, "a dense model in double precision",
                  "attention as routes", "compile the program without --dense");
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

  Verification run() {
    Verification result;
    for (const double c : request_.scales) {
      try {
        result.scales.push_back(verify_scale(c, result.counter_example));
      } catch (const Error& error) {
        throw at_scale(c, error);
      }
    }
    return result;
  }

 private:
  // What one input shows.
  struct Judgement {
    bool wrong = false;
    bool by_task = false;  // wrong against the task's answer
    std::vector<double> expected, bounds;
    std::vector<double> slack;  // see BoundedOutputs
  };

  // What outputs show, of one sample or of many.
  struct Findings {
    double squared_error = 0, largest_error = 0, largest_bound = 0;
    std::vector<double> outputs, bounds;  // sums of squares, by column
    bool wrong = false;
    std::exception_ptr problem;  // kept, so that the first sample's is thrown

    explicit Findings(size_t columns) : outputs(columns), bounds(columns) {}

    void add(const Findings& other) {
      squared_error += other.squared_error;
      // Written so that a NaN counts as the worst.
      if (!(other.largest_error <= largest_error)) largest_error = other.largest_error;
      largest_bound = std::max(largest_bound, other.largest_bound);
      for (size_t k = 0; k < outputs.size(); ++k) {
        outputs[k] += other.outputs[k];
        bounds[k] += other.bounds[k];
      }
    }
  };

  ValueRange range_at(double c) const { return test_range(request_.model->origin.range, c, false); }

  // Where the program has no value on an input that was drawn: nobody has seen that input, but its
  // range can be chosen. Whole numbers are drawn from their own.
  Error at_scale(double c, const Error& error) const {
    const auto is_real = [&](int word) { return program_.words[word].type.is_real(); };
    if (!error.hint().empty() || std::ranges::none_of(program_.inputs, is_real)) return error;
    return {error.code(),
            fmt::format("{}, at c = {} (inputs in [{}, {}])", error.problem(), c, range_at(c).low,
                        range_at(c).high),
            error.expected(),
            fmt::format("--scales {} draws smaller inputs; min and max keep a number in a range",
                        c > 1 ? 1 : c / 10)};
  }

  ScaleVerification verify_scale(double c, std::optional<CounterExample>& example) {
    ScaleVerification result;
    result.c = c;
    result.samples = request_.samples;
    Findings all(program_.outputs.size());
    // As many inputs at a time as memory holds easily.
    const int64_t chunk =
        std::max<int64_t>(1, most_numbers / std::max(input_count_, output_count_));
    for (int64_t first = 0; first < result.samples; first += chunk) {
      const int64_t count = std::min(chunk, result.samples - first);
      all.add(verify_chunk(c, first, count, result, example));
    }
    result.mse = all.squared_error / static_cast<double>(result.samples * output_count_);
    result.largest_error = all.largest_error;
    result.largest_bound = all.largest_bound;
    for (size_t k = 0; k < all.outputs.size(); ++k) {
      if (all.bounds[k] == 0) continue;
      result.bound_share = std::max(result.bound_share, std::sqrt(all.bounds[k] / all.outputs[k]));
    }
    return result;
  }

  Findings verify_chunk(double c, int64_t first, int64_t samples, ScaleVerification& result,
                        std::optional<CounterExample>& example) {
    const std::vector<float> inputs = draw(c, first, samples);
    const auto start = std::chrono::steady_clock::now();
    const std::vector<double> outputs = forward(inputs);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    result.seconds += seconds.count();
    std::vector<Findings> findings(samples, Findings(program_.outputs.size()));
    parallel_for(samples, request_.threads, [&](int64_t s) {
      try {
        findings[s] = find(inputs.data() + s * input_count_, outputs.data() + s * output_count_);
      } catch (const Error&) {
        findings[s].problem = std::current_exception();
      }
    });
    Findings all(program_.outputs.size());
    for (int64_t s = 0; s < samples; ++s) {  // in order: the same sums for any threads
      if (findings[s].problem) std::rethrow_exception(findings[s].problem);
      all.add(findings[s]);
      if (!findings[s].wrong) continue;
      ++result.mismatches;
      const float* input = inputs.data() + s * input_count_;
      if (!example) example = simplified({input, input + input_count_}, c);
    }
    return all;
  }

  std::vector<float> draw(double c, int64_t first, int64_t samples) const {
    std::vector<float> inputs(samples * input_count_);
    const ProgramTask task(program_);
    const ValueRange range = range_at(c);
    for (int64_t s = 0; s < samples; ++s) {
      RandomStream random(request_.seed, Purpose::evaluation_data,
                          static_cast<uint32_t>(std::lround(c * 1000)),
                          static_cast<uint32_t>(first + s));
      task.draw(random, range, program_.length,
                std::span(inputs).subspan(s * input_count_, input_count_));
    }
    return inputs;
  }

  std::vector<double> forward(const std::vector<float>& inputs) {
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

  bool has_answer() const { return task_ != nullptr || definition_ != nullptr; }

  std::vector<float> answer(const float* input) const {
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

  Judgement judge(const float* input, const double* output) const {
    const std::vector<double> exact(input, input + input_count_);
    Judgement judgement;
    judgement.expected = run_static<double>(program_, exact, 1);
    allow_errors(exact, judgement);
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

  const WordType& type_of_output(int i) const {
    return program_.words[program_.outputs[i % program_.outputs.size()]].type;
  }
  bool is_whole(int i) const { return !type_of_output(i).is_real(); }
  bool counts(int i) const {
    const auto columns = static_cast<int>(program_.outputs.size());
    return !task_ || task_->counts(program_.length, i / columns, i % columns);
  }

  // How far each output may be off: whole numbers not at all.
  void allow_errors(const std::vector<double>& input, Judgement& judgement) const {
    judgement.bounds.assign(output_count_, 0);
    judgement.slack.assign(output_count_, 0);
    const auto is_real = [&](int word) { return program_.words[word].type.is_real(); };
    if (std::ranges::none_of(program_.outputs, is_real)) return;
    const double roundoff = in_double_ ? double_roundoff : float_roundoff;
    const std::vector<double> given = routed_inputs<double>(program_, routed_, input, 1);
    const bool dense = !request_.model->spec.routed;
    const BoundedOutputs bounded = bounded_run(plan_, given.data(), roundoff, dense);
    for (int i = 0; i < output_count_; ++i) {
      if (is_whole(i)) continue;
      judgement.bounds[i] = bounded.bounds[i];
      judgement.slack[i] = bounded.slack[i];
    }
  }

  // The task's answer has been computed in double and is rounded once to fp32.
  static double task_slack(double answer) {
    constexpr double steps = 4096;
    return (float_roundoff + steps * double_roundoff) * std::abs(answer);
  }

  Findings find(const float* input, const double* output) const {
    const Judgement judgement = judge(input, output);
    Findings findings(program_.outputs.size());
    findings.wrong = judgement.wrong;
    std::vector<double> target = judgement.expected;
    if (has_answer() && !in_double_) {
      const std::vector<float> exact = answer(input);
      target.assign(exact.begin(), exact.end());
    }
    for (int i = 0; i < output_count_; ++i) {
      const double error = std::abs(output[i] - judgement.expected[i]);
      if (!(error <= findings.largest_error)) findings.largest_error = error;
      findings.largest_bound = std::max(findings.largest_bound, judgement.bounds[i]);
      if (!counts(i)) continue;
      const size_t column = i % program_.outputs.size();
      findings.squared_error += (output[i] - target[i]) * (output[i] - target[i]);
      findings.outputs[column] += judgement.expected[i] * judgement.expected[i];
      findings.bounds[column] += judgement.bounds[i] * judgement.bounds[i];
    }
    return findings;
  }

  bool is_wrong(const std::vector<float>& input) {
    if (input_fault(program_, std::vector<double>(input.begin(), input.end()))) return false;
    try {
      return judge(input.data(), forward(input).data()).wrong;
    } catch (const Error&) {  // an input on which the program has no value
      return false;
    }
  }

  // Takes away numbers and digits as long as the model stays wrong.
  CounterExample simplified(std::vector<float> input, double c) {
    const auto allowed = [&](int i, float x) {
      const WordType& type = program_.words[program_.inputs[i % program_.inputs.size()]].type;
      return type.is_real() ||
             (x >= static_cast<float>(type.low) && x <= static_cast<float>(type.high));
    };
    int64_t left = most_tries;
    // Numbers first to last, in blocks that halve.
    const auto try_instead = [&](int first, int count, const auto& simpler) {
      std::vector<float> candidate = input;
      for (int i = first; i < std::min(first + count, input_count_); ++i) {
        const float x = simpler(input[i]);
        if (allowed(i, x)) candidate[i] = x;
      }
      if (candidate == input || left-- <= 0 || !is_wrong(candidate)) return;
      input = std::move(candidate);
    };
    for (int block = input_count_; block >= 1; block /= 2) {
      for (int i = 0; i < input_count_ && left > 0; i += block) {
        try_instead(i, block, [](float) { return 0.0f; });
      }
    }
    for (int i = 0; i < input_count_ && left > 0; ++i) {
      if (input[i] == 0 || input[i] == 1) continue;
      const float before = input[i];
      try_instead(i, 1, [](float) { return 1.0f; });
      if (input[i] == before) try_instead(i, 1, [](float x) { return std::round(x); });
      if (input[i] == before) try_instead(i, 1, [](float x) { return std::round(x * 10) / 10; });
    }
    const std::vector<double> output = forward(input);
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

  static constexpr int64_t most_numbers = 1 << 22;  // of inputs in memory
  static constexpr int64_t most_tries = 4000;       // at a simpler counter-example

  const VerifyRequest& request_;
  const StaticProgram& program_;
  int processors_, input_count_, output_count_;
  RoutedProgram routed_;
  NetworkPlan plan_;
  Network network_;
  std::optional<RoutedNetwork<double>> in_double_;
  const Task* task_ = nullptr;
  const Definition* definition_ = nullptr;
};

}  // namespace

Verification verify(const VerifyRequest& request) { return Verifier(request).run(); }

}  // namespace posattn
