// A network's outputs on a set of samples, and its errors node by node.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "posattn/evaluation/measurement.h"
#include "posattn/evaluation/metrics/metric.h"
#include "posattn/model/network.h"
#include "posattn/model/text_generator.h"
#include "posattn/tasks/dataset.h"

namespace posattn {

// Samples first .. first + samples - 1 of a set, whose memory they share.
Batch batch_of(const Dataset& set, int64_t first, int64_t samples);
inline Batch batch_of(const Dataset& set) { return batch_of(set, 0, set.samples); }

// Runs the network on the set: [samples, real_nodes, output_columns].
std::vector<float> outputs_of(ForwardPass& network, const Parameters<float>& parameters,
                              const Dataset& set);

// `outputs` together with the set's samples; both must outlive it. The mask is that of loss_mask;
// where it is empty all outputs count.
Predictions predictions_of(const Dataset& set, std::span<const float> outputs,
                           std::span<const uint8_t> mask);

// Runs the network on the set and measures.
MetricSum measure(const Metric& metric, ForwardPass& network, const Parameters<float>& parameters,
                  const Dataset& set, std::span<const uint8_t> mask);

// Squared errors by node that is read, which add up over sets of different lengths.
struct NodeErrors {
  std::vector<double> squared;   // over samples and columns
  std::vector<int64_t> outputs;  // samples x columns; 0 where none counts

  std::vector<double> means() const;  // NaN for a node of which no output counts
  NodeErrors& operator+=(const NodeErrors& other);
};
NodeErrors node_errors(const Predictions& predictions);  // nothing where targets are classes

// Every metric that can be measured of a task, summed over the sets of one test.
class TestSums {
 public:
  explicit TestSums(Loss loss);
  void add(const Predictions& predictions);
  TestSums& operator+=(const TestSums& other);  // of the same loss
  std::vector<Measurement> rows(const std::string& axis, double x) const;

 private:
  std::vector<const Metric*> metrics_;
  std::vector<MetricSum> sums_;  // of each
};

// How well a model answers in writing (tasks/task_text.h): it continues each prompt, and what
// it writes is read as a number.
struct AnswerErrors {
  MetricSum squared;     // over the answers that are numbers
  MetricSum unparsable;  // the share of those that are none
};
AnswerErrors answer_errors(const TextGenerator& generator, const WrittenAnswers& written,
                           const Dataset& set, int threads);

// What the model writes behind each prompt, up to its end or the most that an answer can have.
std::vector<std::string> write_answers(const TextGenerator& generator,
                                       const WrittenAnswers& written,
                                       std::span<const TokenText> prompts, int threads);

}  // namespace posattn
