#include "posattn/evaluation/measure.h"

#include <algorithm>
#include <cassert>
#include <optional>

namespace posattn {

Batch batch_of(const Dataset& set, int64_t first, int64_t samples) {
  const auto part = [&](const auto& all) {
    const int64_t of_sample = set.samples == 0 ? 0 : static_cast<int64_t>(all.size()) / set.samples;
    return std::span(all.data() + first * of_sample, samples * of_sample);
  };
  return {.inputs = part(set.inputs),
          .targets = part(set.targets),
          .samples = samples,
          .real_nodes = set.shape.real_nodes,
          .tokens = part(set.tokens),
          .labels = part(set.labels),
          .pairs = part(set.pairs),
          .pair_classes = part(set.pair_classes)};
}

std::vector<float> outputs_of(ForwardPass& network, const Parameters<float>& parameters,
                              const Dataset& set) {
  std::vector<float> outputs(static_cast<size_t>(set.samples * set.shape.target_count()));
  if (set.samples > 0) network.forward(parameters, batch_of(set), outputs);
  return outputs;
}

namespace {

Predictions predictions_of(const Dataset& set, const Batch& batch, std::span<const float> outputs,
                           std::span<const uint8_t> mask) {
  return {.shape = set.shape,
          .samples = batch.samples,
          .outputs = outputs,
          .targets = batch.targets,
          .labels = batch.labels,
          .mask = mask,
          .length = set.length,
          .inputs = batch.inputs,
          .tokens = batch.tokens,
          .pairs = batch.pairs,
          .pair_classes = batch.pair_classes};
}

}  // namespace

Predictions predictions_of(const Dataset& set, std::span<const float> outputs,
                           std::span<const uint8_t> mask) {
  assert(static_cast<int64_t>(outputs.size()) == set.samples * set.shape.target_count());
  assert(mask.empty() || static_cast<int64_t>(mask.size()) == set.shape.target_count());
  return predictions_of(set, batch_of(set), outputs, mask);
}

MetricSum measure(const Metric& metric, ForwardPass& network, const Parameters<float>& parameters,
                  const Dataset& set, std::span<const uint8_t> mask) {
  // Outputs over a large vocabulary are many: not of all samples at once.
  constexpr int64_t most_outputs = int64_t{1} << 26;
  const int64_t at_once = std::max<int64_t>(1, most_outputs / set.shape.target_count());
  MetricSum sum;
  std::vector<float> outputs;
  for (int64_t first = 0; first < set.samples; first += at_once) {
    const int64_t samples = std::min(at_once, set.samples - first);
    const Batch batch = batch_of(set, first, samples);
    outputs.resize(samples * set.shape.target_count());
    network.forward(parameters, batch, outputs);
    sum += metric.measure(predictions_of(set, batch, outputs, mask));
  }
  return sum;
}

std::vector<double> NodeErrors::means() const {
  std::vector<double> means(squared.size());
  for (size_t i = 0; i < means.size(); ++i) means[i] = MetricSum{squared[i], outputs[i]}.mean();
  return means;
}

NodeErrors& NodeErrors::operator+=(const NodeErrors& other) {
  const size_t nodes = std::max(squared.size(), other.squared.size());
  squared.resize(nodes);
  outputs.resize(nodes);
  for (size_t i = 0; i < other.squared.size(); ++i) {
    squared[i] += other.squared[i];
    outputs[i] += other.outputs[i];
  }
  return *this;
}

NodeErrors node_errors(const Predictions& predictions) {
  const int nodes = predictions.shape.nodes_read(), columns = predictions.shape.output_columns;
  const int64_t first = int64_t{1} * predictions.shape.first_read() * columns;
  if (predictions.targets.empty()) return {};
  NodeErrors errors{std::vector<double>(static_cast<size_t>(nodes)),
                    std::vector<int64_t>(static_cast<size_t>(nodes))};
  for (int64_t sample = 0; sample < predictions.samples; ++sample) {
    auto at = static_cast<size_t>(sample * predictions.shape.target_count() + first);
    for (int node = 0; node < nodes; ++node) {
      double squared = 0;
      bool counts = false;
      for (int column = 0; column < columns; ++column, ++at) {
        if (!predictions.counts(first + int64_t{1} * node * columns + column)) continue;
        counts = true;
        const double error = predictions.outputs[at] - static_cast<double>(predictions.targets[at]);
        squared += error * error;
      }
      errors.squared[node] += squared;
      errors.outputs[node] += counts ? columns : 0;
    }
  }
  return errors;
}

TestSums::TestSums(Loss loss) : metrics_(metrics()) {
  std::erase_if(metrics_, [loss](const Metric* metric) {
    return metric->measure == nullptr || metric->loss != loss;
  });
  sums_.resize(metrics_.size());
}

void TestSums::add(const Predictions& predictions) {
  for (size_t i = 0; i < metrics_.size(); ++i) sums_[i] += metrics_[i]->measure(predictions);
}

TestSums& TestSums::operator+=(const TestSums& other) {
  for (size_t i = 0; i < sums_.size(); ++i) sums_[i] += other.sums_[i];
  return *this;
}

std::vector<Measurement> TestSums::rows(const std::string& axis, double x) const {
  std::vector<Measurement> rows;
  for (size_t i = 0; i < metrics_.size(); ++i) {
    rows.push_back({Split::test, axis, x, std::string(metrics_[i]->name), sums_[i].mean()});
  }
  return rows;
}

std::vector<std::string> write_answers(const TextGenerator& generator,
                                       const WrittenAnswers& written,
                                       std::span<const TokenText> prompts, int threads) {
  const Tokeniser& tokeniser = written.tokeniser();
  std::vector<std::string> answers;
  for (const TokenText& answer : generator.continue_texts(
           prompts,
           {.most_tokens = written.longest_answer(), .end = tokeniser.end(), .threads = threads})) {
    answers.push_back(tokeniser.decode(answer));
  }
  return answers;
}

AnswerErrors answer_errors(const TextGenerator& generator, const WrittenAnswers& written,
                           const Dataset& set, int threads) {
  const auto sample = [&](int64_t s) {
    return std::span<const int32_t>(set.tokens)
        .subspan(s * set.shape.real_nodes, set.shape.real_nodes);
  };
  std::vector<TokenText> prompts;
  for (int64_t s = 0; s < set.samples; ++s) {
    const std::span<const int32_t> prompt = written.prompt(sample(s));
    prompts.emplace_back(prompt.begin(), prompt.end());
  }
  const std::vector<std::string> answers = write_answers(generator, written, prompts, threads);
  AnswerErrors errors;
  for (int64_t s = 0; s < set.samples; ++s) {
    const std::optional<double> answer = written.parse(answers[s]);
    errors.unparsable += {answer ? 0.0 : 1.0, 1};
    if (!answer) continue;
    const double error = *answer - written.answer(sample(s));
    errors.squared += {error * error, 1};
  }
  return errors;
}

}  // namespace posattn
