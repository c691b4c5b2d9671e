#include "posattn/cli/predict_answers.h"

#include <fmt/format.h>

#include <algorithm>

#include "posattn/base/error.h"
#include "posattn/base/text.h"
#include "posattn/evaluation/answer_errors.h"
#include "posattn/tasks/task.h"

namespace posattn {
const WrittenAnswers* written_answers_of(const Model& model) {
  const Task* task = task_of(model.origin);
  return task == nullptr ? nullptr : task->written_answers();
}

std::vector<std::string> answers_to(const Model& model, std::string_view text,
                                    const std::string& name, int threads) {
  const WrittenAnswers& written = *written_answers_of(model);
  std::vector<TokenText> prompts;
  for (size_t line = 1; !text.empty(); ++line) {
    const size_t end = std::min(text.find('\n'), text.size());
    try {
      prompts.push_back(written.tokeniser().encode(std::string(text.substr(0, end)) + '\n'));
      if (static_cast<int>(prompts.back().size()) > model.spec.real_nodes) {
        throw Error(ExitCode::data, fmt::format("{} tokens", prompts.back().size()),
                    fmt::format("at most {}, the model's nodes", model.spec.real_nodes));
      }
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("{}:{}: {}", name, line, error.problem()),
                  error.expected(), error.hint());
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  std::vector<std::string> answers =
      write_answers(TextGenerator(model.spec, model.parameters), written, prompts, threads);
  // A model may write any bytes.
  std::ranges::transform(answers, answers.begin(),
                         [](const auto& answer) { return printable(answer); });
  return answers;
}

}  // namespace posattn
