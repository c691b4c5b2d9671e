// The paper's tasks of mixed type (mixed_prompt.h): the characters of a prompt as tokens, then its
// prices as numbers. The length is the number of priced categories.
#include <fmt/format.h>

#include <algorithm>

#include "posattn/base/error.h"
#include "posattn/tasks/mixed_prompt.h"
#include "posattn/tasks/task.h"

namespace posattn {
namespace {

// A character's place here is its token.
const std::string& characters() {
  static const std::string all =
      fmt::format(" ,CFacdefgimnorstux{}{}{}{}", training_symbols.symbols, training_symbols.signs,
                  test_symbols.symbols, test_symbols.signs);
  return all;
}

void write_sample(const MixedPrompt& prompt, const SampleRoom& room) {
  const std::string text = text_of(prompt);
  std::ranges::fill(room.values, 0.0f);
  for (size_t i = 0; i < text.size(); ++i) {
    room.tokens[i] = static_cast<int32_t>(characters().find(text[i]));
  }
  for (size_t i = 0; i < prompt.prices.size(); ++i) {
    room.tokens[text.size() + i] = -1;
    room.values[text.size() + i] = prompt.prices[i];
  }
}

MixedPrompt read_sample(int length, const SampleView& sample) {
  const auto text_nodes = static_cast<size_t>(text_length(length));
  std::string text;
  for (const int32_t token : sample.tokens.first(text_nodes)) text += characters().at(token);
  return read_prompt(text, sample.values.subspan(text_nodes));
}

class PromptText : public TaskText {
 public:
  explicit PromptText(const std::vector<Question>& questions)
      : questions_(questions),
        form_(fmt::format("a prompt, as 'CatA, 1.20, ..., Cat+D, ... Find {} of categories CatA, "
                          "CatB, CatD and CatE.'",
                          word_of(questions.front()))) {}

  std::string_view form() const override { return form_; }
  int length_of(std::string_view line) const override {
    return static_cast<int>(read_prompt(line).symbols.size());
  }
  void read(std::string_view line, int length, const SampleRoom& room) const override {
    const MixedPrompt prompt = read_prompt(line);
    if (static_cast<int>(prompt.symbols.size()) != length) {
      throw Error(ExitCode::data,
                  fmt::format("a prompt of {} categories with a price", prompt.symbols.size()),
                  fmt::format("{}: the model was trained on prompts of so many", length));
    }
    if (std::ranges::find(questions_, prompt.question) == questions_.end()) {
      throw Error(ExitCode::data, fmt::format("a question for the {}", word_of(prompt.question)),
                  "a question as in training: " + form_);
    }
    write_sample(prompt, room);
  }
  std::string node(int32_t token, std::span<const float> values) const override {
    if (token < 0) return written_price(values[0]);
    return std::string(1, characters().at(token));
  }
  std::string answer(int32_t /*label*/) const override { return ""; }

 private:
  std::vector<Question> questions_;
  std::string form_;
};

class MixedType final : public Task {
 public:
  MixedType(std::string_view name, std::string_view description, std::vector<Question> questions)
      : name_(name),
        description_(description),
        questions_(std::move(questions)),
        text_(questions_) {}

  std::string_view name() const override { return name_; }
  std::string_view description() const override { return description_; }

  // The answer is read at the first character.
  TaskShape shape(int length) const override {
    check_categories(length);
    return {.real_nodes = text_length(length) + length,
            .vocabulary = static_cast<int>(characters().size()),
            .read_nodes = 1};
  }
  int shortest_length() const override { return asked_categories; }
  bool supports_variable_length() const override { return false; }

  std::vector<std::pair<std::string, std::string>> settings() const override {
    return {{"width", "32"},      {"heads", "2"},         {"depth", "3"},
            {"mlp-width", "32"},  {"positions", "added"}, {"range", "5"},
            {"samples", "50000"}, {"batch", "1000"},      {"plateau-patience", "10"}};
  }
  const TaskText* text() const override { return &text_; }
  std::vector<TestAxis> test_axes() const override {
    return {{"c", "prices in [0, range c], symbols that training never shows"},
            {"swapped", "1: the prompt asks about four others than the answer; 0: about the same"}};
  }

  void make_sample(RandomStream& random, const Sampling& sampling, int length,
                   const SampleRoom& room) const override {
    PromptDraw draw{.categories = length,
                    .alphabet = sampling.is_test ? test_symbols : training_symbols,
                    .range = sampling.range};
    draw.question = questions_[random.below(static_cast<uint32_t>(questions_.size()))];
    MixedPrompt prompt = draw_prompt(random, draw);
    std::ranges::fill(room.targets, 0.0f);
    room.targets[0] = prompt.answer();
    if (sampling.axis == "swapped" && is_swapped(sampling.x)) draw_asked(random, prompt);
    write_sample(prompt, room);
  }

  std::vector<Baseline> baselines() const override {
    return {{.name = "query-blind",
             .description = "the mean of the answer over every choice of four categories: knows "
                            "the prices and what is asked, not about which",
             .predict =
                 [](int length, const SampleView& sample, std::span<float> outputs) {
                   const MixedPrompt prompt = read_sample(length, sample);
                   outputs[0] =
                       query_blind_answer(prompt.question, prompt.prices, asked_categories);
                 }},
            {.name = "oracle",
             .description = "the answer to what the prompt asks",
             .predict = [](int length, const SampleView& sample, std::span<float> outputs) {
               outputs[0] = read_sample(length, sample).answer();
             }}};
  }

 private:
  static bool is_swapped(double x) {
    if (x == 0 || x == 1) return x == 1;
    throw Error(ExitCode::usage, fmt::format("swapped = {}", x), "0 or 1");
  }

  std::string_view name_, description_;
  std::vector<Question> questions_;
  PromptText text_;
};

}  // namespace

const Task& mixed_min_task() {
  static const MixedType task("mixed-min", "text and numbers: the least of four named prices",
                              {Question::minimum});
  return task;
}

const Task& mixed_sum_task() {
  static const MixedType task("mixed-sum", "text and numbers: the sum of four named prices",
                              {Question::sum});
  return task;
}

const Task& mixed_multitask_task() {
  static const MixedType task("mixed-multitask",
                              "text and numbers: the least or the greatest of four named prices",
                              {Question::minimum, Question::maximum});
  return task;
}

}  // namespace posattn
