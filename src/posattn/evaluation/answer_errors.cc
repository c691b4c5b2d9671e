#include "posattn/evaluation/answer_errors.h"

#include <optional>

namespace posattn {

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
