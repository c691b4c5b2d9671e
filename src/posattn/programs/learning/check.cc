#include "posattn/programs/learning/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "posattn/base/error.h"
#include "posattn/base/random.h"
#include "posattn/evaluation/predict.h"
#include "posattn/model/blocks/reference_network.h"
#include "posattn/programs/checking/judged_network.h"

namespace posattn {
namespace {

// Rounding of some hundred sums, each of which cancels some digits.
constexpr double part_in_float = 1e-5, part_in_double = 1e-12;
constexpr int64_t most_at_once = 1000;

class Verifier {
 public:
  explicit Verifier(const LearningRequest& request)
      : request_(request),
        program_(*request.program),
        size_(int64_t{1} * program_.nodes() * program_.columns()),
        written_(compile(program_)) {
    const ModelSpec& spec = request.model->spec;
    if (spec.real_nodes != program_.nodes() || spec.data_columns != program_.columns() ||
        spec.output_columns != 1 || spec.vocabulary != 0) {
      throw Error(ExitCode::data,
                  fmt::format("a model of {} nodes with {} numbers in for '{}'", spec.real_nodes,
                              spec.data_columns, program_.algorithm().name),
                  fmt::format("{} nodes with {}", program_.nodes(), program_.columns()));
    }
    if (request.in_double) exact_.emplace(weights_of<double>(program_.network()));
  }

  LearningVerification run() {
    result_.part = request_.in_double ? part_in_double : part_in_float;
    result_.other_weights = difference_between(*request_.model, written_);
    result_.any_weights = request_.any_weights;
    for (const double c : request_.scales) {
      LearningScale& scale = result_.scales.emplace_back();
      scale.c = c;
      for (int64_t first = 0; first < request_.samples; first += most_at_once) {
        compare(first, std::min(most_at_once, request_.samples - first), scale);
      }
    }
    return std::move(result_);
  }

 private:
  std::vector<double> answers(const std::vector<float>& samples, int64_t count) const {
    if (exact_) {
      const std::vector<double> wide(samples.begin(), samples.end());
      const std::vector<double> outputs =
          reference_forward(written_.spec, *exact_,
                            {.inputs = wide, .samples = count, .real_nodes = program_.nodes()});
      std::vector<double> first;
      for (int64_t s = 0; s < count; ++s) first.push_back(outputs[s * program_.nodes()]);
      return first;
    }
    const std::vector<float> outputs =
        read_outputs(request_.model->spec,
                     predict(*request_.model,
                             {.inputs = samples, .samples = count, .real_nodes = program_.nodes()},
                             request_.threads),
                     program_.nodes());
    return {outputs.begin(), outputs.end()};
  }

  void compare(int64_t first, int64_t count, LearningScale& scale) {
    std::vector<float> samples(count * size_);
    for (int64_t s = 0; s < count; ++s) {
      RandomStream random(request_.seed, Purpose::evaluation_data,
                          static_cast<uint32_t>(std::lround(scale.c * 1000)),
                          static_cast<uint32_t>(first + s));
      draw_regression(random, program_.whole("d"), scale.c,
                      std::span(samples).subspan(s * size_, size_));
    }
    const std::vector<double> found = answers(samples, count);
    for (int64_t s = 0; s < count; ++s) {
      const std::vector<double> sample(&samples[s * size_], &samples[s * size_] + size_);
      const Learned learned = program_.learn(sample);
      const double error = std::abs(found[s] - learned.answer), bound = learned.bound(result_.part);
      ++scale.samples;
      if (learned.size > 0)
        scale.largest_error = std::max(scale.largest_error, error / learned.size);
      if (error <= bound) continue;  // what is no number is wrong
      ++scale.mismatches;
      if (result_.wrong) continue;
      result_.wrong = {
          {&samples[s * size_], &samples[s * size_] + size_}, learned.answer, found[s], bound};
    }
  }

  const LearningRequest& request_;
  const LearningProgram& program_;
  int64_t size_;
  Model written_;
  std::optional<Parameters<double>> exact_;
  LearningVerification result_;
};

}  // namespace

LearningVerification verify(const LearningRequest& request) { return Verifier(request).run(); }

void draw_regression(RandomStream& random, int d, double c, std::span<float> sample) {
  const size_t columns = d + 1;
  std::vector<double> w(d);
  for (double& weight : w) weight = random.normal() / std::sqrt(d);
  const double sigma = random.uniform();
  for (size_t i = 0; i * columns < sample.size(); ++i) {
    const std::span<float> node = sample.subspan(i * columns, columns);
    double y = sigma * random.normal();
    for (int k = 0; k < d; ++k) {
      node[k] = static_cast<float>(random.normal());
      y += w[k] * node[k];
    }
    node[d] = i == 0 ? 0.0F : static_cast<float>(c * y);
  }
}

}  // namespace posattn
