#include "posattn/playground/letters.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "posattn/base/text.h"
#include "posattn/tasks/lettered.h"
#include "posattn/tasks/question.h"

namespace posattn::playground {
namespace {

bool names_places(const Task& task) { return task.name() == "pointer"; }

// y_i = x of p(p(... p(i))), where the letter of an item is the place p(i).
std::vector<float> followed(int hops, std::span<const int32_t> places,
                            std::span<const float> numbers) {
  std::vector<float> answer;
  for (size_t i = 0; i < places.size(); ++i) {
    size_t at = i;
    for (int hop = 0; hop < hops; ++hop) {
      at = static_cast<size_t>(places[at]);
      if (at >= places.size()) return {};
    }
    answer.push_back(numbers[at]);
  }
  return answer;
}

std::vector<float> by_letter(std::span<const int32_t> letters, std::span<const float> numbers) {
  std::vector<size_t> order(letters.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](size_t item) { return letters[item]; });
  std::vector<float> answer;
  for (const size_t item : order) answer.push_back(numbers[item]);
  return answer;
}

// The least, the sum or the greatest of the letters in a question, or the number of its one letter.
std::vector<float> to_question(std::span<const int32_t> question, std::span<const int32_t> letters,
                               std::span<const float> numbers) {
  Question kind = Question::sum;
  std::vector<float> asked;
  for (const int32_t token : question) {
    if (token >= 2 * letter_count) {
      kind = static_cast<Question>(token - 2 * letter_count);
      continue;
    }
    const auto item = std::ranges::find(letters, token);
    if (item == letters.end() || std::ranges::count(question, token) > 1) return {};
    asked.push_back(numbers[static_cast<size_t>(item - letters.begin())]);
  }
  if (asked.empty()) return {};
  std::vector<float> answer(question.size() + letters.size());
  answer[0] = answer_to(kind, asked);
  return answer;
}

}  // namespace

bool has_letters(const Task& task) {
  return dynamic_cast<const LetteredText*>(task.text()) != nullptr;
}

std::vector<std::string> letters_of(const Task& task, int length) {
  if (!has_letters(task)) return {};
  const int known = names_places(task) ? length : task.shape(length).vocabulary;
  std::vector<std::string> words;
  for (int token = 0; token < known; ++token) {
    words.push_back(task.text()->node(token, std::array{0.0f}));
  }
  return words;
}

std::vector<float> lettered_answer(const ModelOrigin& origin, std::span<const int32_t> tokens,
                                   std::span<const float> numbers) {
  const Task* task = task_of(origin);
  if (task == nullptr || !has_letters(*task)) return {};
  const auto items = static_cast<size_t>(origin.length);
  if (tokens.size() < items || tokens.size() != numbers.size()) return {};
  const size_t before = tokens.size() - items;
  const auto letters = tokens.subspan(before);
  numbers = numbers.subspan(before);
  if (names_places(*task)) {
    int hops = task->parameters()[0].standard;
    const std::string_view set = origin.task_set;  // hops=3
    if (!set.empty()) parse_exactly(set.substr(set.find('=') + 1), hops);
    return followed(hops, letters, numbers);
  }
  std::vector<int32_t> sorted(letters.begin(), letters.end());
  std::ranges::sort(sorted);
  if (std::ranges::adjacent_find(sorted) != sorted.end()) return {};
  return before == 0 ? by_letter(letters, numbers)
                     : to_question(tokens.first(before), letters, numbers);
}

}  // namespace posattn::playground
