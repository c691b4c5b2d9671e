// Questions about items of a letter and a number: the number of one letter, or the least, the sum
// or the greatest of several. Letters say which, so a model must find them by content. The nodes
// are what is wanted (a token of its own; none where it is one number), the letters that are asked
// about, and the items. The first node answers.
#include <fmt/format.h>

#include <algorithm>

#include "posattn/base/text.h"
#include "posattn/tasks/lettered.h"
#include "posattn/tasks/question.h"

namespace posattn {
namespace {

constexpr int questions_from = 2 * letter_count;  // their tokens
constexpr int standard_asked = 4;

struct AskedSetting {
  std::string_view name, description;
  std::vector<Question> questions = {};  // one of them is asked; none: the number of one letter
  int asked = standard_asked;

  int first_asked() const { return questions.empty() ? 0 : 1; }
  int nodes_before() const { return first_asked() + asked; }
};

// "a 0.5, b -1, c 2, min a c", or "a 0.5, b -1, ? b".
class AskedText final : public LetteredText {
 public:
  explicit AskedText(const AskedSetting& setting)
      : LetteredText(form_of(setting), 2 * letter_count), setting_(setting) {}

 private:
  static std::string form_of(const AskedSetting& setting) {
    if (setting.questions.empty()) return "items and a letter, as a 0.5, b -1, ? a";
    return fmt::format(
        "items, then {} and {} of their letters, as a 0.5, b -1, {} a ...",
        setting.questions.size() > 1 ? "min, sum or max" : word_of(setting.questions[0]),
        setting.asked, word_of(setting.questions[0]));
  }

  bool asks() const override { return true; }

  void read_question(std::span<const std::string_view> words, std::span<const int32_t> letters,
                     std::span<int32_t> nodes) const override {
    if (static_cast<int>(words.size()) != 1 + setting_.asked) {
      refuse(fmt::format("a question of {} words", words.size()));
    }
    const auto kind = std::ranges::find(setting_.questions, words[0], word_of);
    if (kind != setting_.questions.end()) {
      nodes[0] = questions_from + static_cast<int32_t>(*kind);
    } else if (!setting_.questions.empty() || words[0] != "?") {
      refuse(fmt::format("the question '{}'", printable(words[0])));
    }
    const auto asked = nodes.subspan(setting_.first_asked());
    for (size_t i = 0; i < asked.size(); ++i) {
      asked[i] = token_of(words[i + 1]);
      const auto earlier = asked.first(i);
      if (std::ranges::find(letters, asked[i]) == letters.end() ||
          std::ranges::find(earlier, asked[i]) != earlier.end()) {
        refuse(fmt::format("'{}' in the question", printable(words[i + 1])));
      }
    }
  }

  const AskedSetting& setting_;
};

class AskedTask final : public Task {
 public:
  explicit AskedTask(AskedSetting setting) : setting_(std::move(setting)), text_(setting_) {}
  AskedTask(const AskedTask&) = delete;  // text_ looks at setting_

  std::string_view name() const override { return setting_.name; }
  std::string_view description() const override { return setting_.description; }

  std::vector<TaskParameter> parameters() const override {
    if (setting_.questions.empty()) return {};
    return {{"asked", "letters that a question names", standard_asked, 1, 8}};
  }
  std::unique_ptr<const Task> variant(std::span<const int> values) const override {
    AskedSetting other = setting_;
    other.asked = values[0];
    return std::make_unique<AskedTask>(std::move(other));
  }

  TaskShape shape(int length) const override {
    check_items(length);
    return {.real_nodes = setting_.nodes_before() + length,
            .vocabulary = questions_from + (setting_.questions.empty() ? 0 : 3),
            .read_nodes = 1,
            .tokens_and_values = true};
  }
  int shortest_length() const override { return setting_.asked; }
  std::vector<std::pair<std::string, std::string>> settings() const override {
    return lettered_settings();
  }
  const TaskText* text() const override { return &text_; }
  std::vector<TestAxis> test_axes() const override {
    return {{"c", "values in [-range c, range c]"}, letters_axis()};
  }

  // Of recall: the letters in order, and which of them is asked.
  int64_t symbol_inputs(int length) const override {
    const int64_t inputs = orders_of_letters(length) * length;
    return setting_.asked == 1 && setting_.questions.empty() && inputs <= most_listed ? inputs : 0;
  }
  void make_sample(RandomStream& random, const Sampling& sampling, int length,
                   const SampleRoom& room) const override {
    const size_t before = room.tokens.size() - static_cast<size_t>(length);
    std::ranges::fill(room.values, 0.0f);
    const auto numbers = room.values.subspan(before);
    draw_numbers(random, sampling, numbers);
    const auto letters = room.tokens.subspan(before);
    Sampling of_letters = sampling;
    if (sampling.listed >= 0) of_letters.listed /= length;
    draw_letters(random, of_letters, letters);
    const std::vector<int> items =
        sampling.listed < 0 ? choose(random, length, setting_.asked)
                            : std::vector<int>{static_cast<int>(sampling.listed % length)};
    std::vector<float> asked;
    for (size_t i = 0; i < items.size(); ++i) {
      room.tokens[setting_.first_asked() + i] = letters[items[i]];
      asked.push_back(numbers[items[i]]);
    }
    std::ranges::fill(room.targets, 0.0f);
    if (setting_.questions.empty()) {
      room.targets[0] = asked[0];
      return;
    }
    const auto kinds = static_cast<uint32_t>(setting_.questions.size());
    const Question question = setting_.questions[kinds == 1 ? 0 : random.below(kinds)];
    room.tokens[0] = questions_from + static_cast<int32_t>(question);
    room.targets[0] = answer_to(question, asked);
  }

  std::vector<Baseline> baselines() const override {
    return {{"query-blind",
             "the mean of the answer over every choice of letters: knows the numbers and what is "
             "wanted of them, not of which",
             [setting = setting_](int length, const SampleView& sample, std::span<float> outputs) {
               const auto question = setting.questions.empty()
                                         ? Question::sum
                                         : static_cast<Question>(sample.tokens[0] - questions_from);
               outputs[0] = query_blind_answer(question, sample.values.last(length), setting.asked);
             }}};
  }

 private:
  AskedSetting setting_;
  AskedText text_;
};

}  // namespace

const Task& recall_task() {
  static const AskedTask task({"recall", "the number that stands with a letter", {}, 1});
  return task;
}

const Task& asked_min_task() {
  static const AskedTask task(
      {"asked-min", "the least number of the letters asked about", {Question::minimum}});
  return task;
}

const Task& asked_sum_task() {
  static const AskedTask task(
      {"asked-sum", "the sum of the numbers of the letters asked about", {Question::sum}});
  return task;
}

const Task& asked_operation_task() {
  static const AskedTask task({"asked-operation",
                               "the least, the sum or the greatest, as a token says, of the "
                               "letters asked about",
                               {Question::minimum, Question::sum, Question::maximum}});
  return task;
}

}  // namespace posattn
