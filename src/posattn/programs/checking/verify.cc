#include "posattn/programs/checking/verify.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <exception>
#include <limits>

#include "posattn/base/error.h"
#include "posattn/base/parallel.h"
#include "posattn/base/random.h"
#include "posattn/programs/checking/hard_inputs.h"
#include "posattn/programs/checking/judged_network.h"
#include "posattn/programs/checking/program_task.h"

namespace posattn {
namespace {

constexpr double training_bound = 2;            // as compile() writes it for real numbers
constexpr double farthest = 1e15;               // of far inputs; test_range allows no more
constexpr int64_t most_numbers = 1 << 22;       // of inputs in memory
constexpr uint32_t hard_variant = 0x80000000u;  // streams of hard inputs are their own

// What inputs of one kind show.
struct Findings {
  int64_t inputs = 0, mismatches = 0;
  double squared_error = 0, largest_error = 0, largest_bound = 0, seconds = 0;
  std::vector<double> expected, bounds;  // sums of squares, by output
};

class Verifier {
 public:
  explicit Verifier(const VerifyRequest& request)
      : request_(request), network_(request), task_(network_.program()), hard_(network_.program()) {
    const StaticProgram& program = network_.program();
    result_.whole = std::ranges::none_of(
        program.inputs, [&](int word) { return program.words[word].type.is_real(); });
  }

  Verification run() {
    result_.other_weights = difference_from_compiled(*request_.model, network_.routed());
    result_.any_weights = request_.any_weights;
    for (const double c : result_.whole ? std::vector<double>{1} : request_.scales) {
      try {
        result_.scales.push_back(verify_scale(c));
      } catch (const Error& error) {
        throw at_scale(c, error);
      }
    }
    if (!result_.whole) {
      result_.far =
          all_of(request_.samples / 4 + 1, true, 1, [&](int64_t s, std::span<float> input) {
            draw_far(s, input);
          }).inputs;
    }
    return std::move(result_);
  }

 private:
  static ValueRange range_at(double c) { return test_range(training_bound, c, false); }

  // The program has no value on a random input. The user has not seen that input, but can choose
  // its range. Whole numbers are drawn from their own.
  Error at_scale(double c, const Error& error) const {
    if (!error.hint().empty() || result_.whole) return error;
    return {error.code(),
            fmt::format("{}, at c = {} (inputs in [{}, {}])", error.problem(), c, range_at(c).low,
                        range_at(c).high),
            error.expected(),
            fmt::format("--scales {} draws smaller inputs; min and max keep a number in a range",
                        c > 1 ? 1 : c / 10)};
  }

  RandomStream stream(double c, int64_t index, uint32_t variant) const {
    return {request_.seed, Purpose::evaluation_data,
            static_cast<uint32_t>(std::lround(c * 1000)) | variant, static_cast<uint32_t>(index)};
  }

  void draw_far(int64_t s, std::span<float> input) const {
    RandomStream random = stream(0, s, hard_variant);
    const double share = random.uniform();
    const double bound = 1e-3 * std::pow(farthest / 1e-3, share);
    hard_.draw(random, training_range(bound, false), s, input);
  }

  ScaleVerification verify_scale(double c) {
    const ValueRange range = range_at(c);
    const Findings random = all_of(request_.samples, false, c, [&](int64_t s, std::span<float> in) {
      RandomStream numbers = stream(c, s, 0);
      task_.draw(numbers, range, network_.program().length, in);
    });
    const Findings hard = all_of(request_.samples, true, c, [&](int64_t s, std::span<float> in) {
      RandomStream numbers = stream(c, s, hard_variant);
      hard_.draw(numbers, range, s, in);
    });
    ScaleVerification result;
    result.c = c;
    result.samples = random.inputs;
    result.hard = hard.inputs;
    result.mismatches = random.mismatches + hard.mismatches;
    result.largest_error = worse(random.largest_error, hard.largest_error);
    result.largest_bound = worse(random.largest_bound, hard.largest_bound);
    result.mse = random.squared_error / (static_cast<double>(random.inputs) *
                                         static_cast<double>(network_.output_count()));
    result.seconds = random.seconds + hard.seconds;
    const double by_range = static_cast<double>(random.inputs) * range.high * range.high;
    for (size_t k = 0; k < random.bounds.size(); ++k) {
      if (random.bounds[k] == 0) continue;
      const double size = random.expected[k] == 0 ? by_range : random.expected[k];
      result.bound_share = worse(result.bound_share, std::sqrt(random.bounds[k] / size));
    }
    return result;
  }

  // The larger of two; what is no number, as infinity over infinity, is the worst.
  static double worse(double a, double b) {
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::infinity();
    return std::max(a, b);
  }

  // Draws inputs, runs the network, and judges. Of hard inputs those on which the program has no
  // value are left out.
  template <class Draw>
  Findings all_of(int64_t count, bool hard, double c, const Draw& draw) {
    Findings all;
    all.expected.resize(network_.output_count());
    all.bounds.resize(network_.output_count());
    // Memory holds so many inputs at a time easily.
    const int64_t chunk = std::max<int64_t>(
        1, most_numbers / std::max(network_.input_count(), network_.output_count()));
    for (int64_t first = 0; first < count; first += chunk) {
      const int64_t samples = std::min(chunk, count - first);
      std::vector<float> inputs(samples * network_.input_count());
      for (int64_t s = 0; s < samples; ++s) {
        draw(first + s,
             std::span(inputs).subspan(s * network_.input_count(), network_.input_count()));
      }
      if (hard) keep_valued(inputs);
      if (!inputs.empty()) judge(inputs, hard, c, all);
    }
    return all;
  }

  // Leaves out what breaks a promise or has no value.
  void keep_valued(std::vector<float>& inputs) const {
    const int64_t size = network_.input_count();
    int64_t kept = 0;
    for (int64_t s = 0; s * size < static_cast<int64_t>(inputs.size()); ++s) {
      const std::vector<double> input(&inputs[s * size], &inputs[s * size] + size);
      try {
        if (input_fault(network_.program(), input)) continue;
        run_static<double>(network_.program(), input, 1);
      } catch (const Error&) {
        continue;
      }
      std::copy_n(&inputs[s * size], size, &inputs[kept++ * size]);
    }
    inputs.resize(kept * size);
  }

  void judge(const std::vector<float>& inputs, bool hard, double c, Findings& all) {
    const int64_t in = network_.input_count(), out = network_.output_count();
    const auto samples = static_cast<int64_t>(inputs.size()) / in;
    const auto start = std::chrono::steady_clock::now();
    const std::vector<double> outputs = network_.forward(inputs);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    all.seconds += seconds.count();
    std::vector<Judgement> judgements(samples);
    std::vector<std::exception_ptr> problems(samples);  // kept, so that the first one is thrown
    parallel_for(samples, request_.threads, [&](int64_t s) {
      try {
        judgements[s] = network_.judge(&inputs[s * in], &outputs[s * out]);
      } catch (const Error&) {
        problems[s] = std::current_exception();
      }
    });
    for (int64_t s = 0; s < samples; ++s) {  // in order: the same sums for any threads
      if (problems[s]) std::rethrow_exception(problems[s]);
      add(&inputs[s * in], &outputs[s * out], judgements[s], hard, all);
      if (!judgements[s].wrong) continue;
      ++all.mismatches;
      if (result_.counter_example) continue;
      result_.counter_example = simplified(network_, {&inputs[s * in], &inputs[s * in] + in}, c);
    }
  }

  void add(const float* input, const double* output, const Judgement& judgement, bool hard,
           Findings& all) const {
    ++all.inputs;
    const std::vector<double> target =
        hard ? judgement.expected : network_.target(input, judgement);
    for (int i = 0; i < network_.output_count(); ++i) {
      all.largest_error = worse(all.largest_error, std::abs(output[i] - judgement.expected[i]));
      all.largest_bound = worse(all.largest_bound, judgement.bounds[i]);
      if (!network_.counts(i)) continue;
      all.squared_error += (output[i] - target[i]) * (output[i] - target[i]);
      all.expected[i] += judgement.expected[i] * judgement.expected[i];
      all.bounds[i] += judgement.bounds[i] * judgement.bounds[i];
    }
  }

  const VerifyRequest& request_;
  JudgedNetwork network_;
  ProgramTask task_;
  HardInputs hard_;
  Verification result_;
};

}  // namespace

int64_t Verification::inputs() const {
  int64_t sum = far;
  for (const ScaleVerification& scale : scales) sum += scale.samples + scale.hard;
  return sum;
}

Verification verify(const VerifyRequest& request) { return Verifier(request).run(); }

}  // namespace posattn
