#include "posattn/tasks/question.h"

#include <gtest/gtest.h>

#include <bit>

namespace posattn {
namespace {

double mean_over_all_choices(Question question, std::span<const float> numbers, int chosen) {
  double sum = 0, choices = 0;
  for (uint32_t mask = 0; mask < 1u << numbers.size(); ++mask) {
    if (std::popcount(mask) != chosen) continue;
    std::vector<float> asked;
    for (size_t i = 0; i < numbers.size(); ++i) {
      if ((mask >> i & 1) != 0) asked.push_back(numbers[i]);
    }
    sum += answer_to(question, asked);
    ++choices;
  }
  return sum / choices;
}

TEST(Question, BlindAnswerIsTheMeanOverAllChoices) {
  for (const int count : {1, 4, 5, 8, 11}) {
    for (uint32_t sample = 0; sample < 5; ++sample) {
      RandomStream random(3, Purpose::test_data, 0, sample);
      std::vector<float> numbers(count);
      for (float& number : numbers) number = random.uniform(-2, 2);
      for (int asked = 1; asked <= count; ++asked) {
        for (const Question question : {Question::minimum, Question::sum, Question::maximum}) {
          EXPECT_NEAR(query_blind_answer(question, numbers, asked),
                      mean_over_all_choices(question, numbers, asked), 1e-5)
              << word_of(question) << ", " << asked << " of " << count;
        }
      }
    }
  }
}

}  // namespace
}  // namespace posattn
