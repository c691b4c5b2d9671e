// How well a model answers in writing (tasks/task_text.h): it continues each prompt, and what
// it writes is read as a number.
#pragma once

#include <string>
#include <vector>

#include "posattn/evaluation/metrics/metric.h"
#include "posattn/model/text_generator.h"
#include "posattn/tasks/dataset.h"

namespace posattn {

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
