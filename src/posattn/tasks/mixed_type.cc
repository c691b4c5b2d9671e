// The paper's tasks of mixed type (mixed_prompt.h): the characters of a prompt as tokens, then its
// prices as numbers; or each price behind its category's name. The length is the number of priced
// categories.
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

// Where prices stand: behind the text, or each behind its category's name.
enum class PricePlaces { last, inside };

struct PromptForm {
  PromptNames names = {};
  PricePlaces prices = PricePlaces::last;
  bool same_symbols = false;  // tests have those of training
};

void write_sample(const MixedPrompt& prompt, PricePlaces places, const SampleRoom& room) {
  const std::string text = text_of(prompt);
  const std::vector<size_t> inside = price_places(prompt);
  std::ranges::fill(room.values, 0.0f);
  size_t node = 0, price = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    while (price < prompt.prices.size() &&
           i == (places == PricePlaces::inside ? inside[price] : text.size())) {
      room.tokens[node] = -1;
      room.values[node++] = prompt.prices[price++];
    }
    if (i < text.size()) room.tokens[node++] = static_cast<int32_t>(characters().find(text[i]));
  }
}

MixedPrompt read_sample(const PromptNames& names, const SampleView& sample) {
  std::string text;
  std::vector<float> prices;
  for (size_t node = 0; node < sample.tokens.size(); ++node) {
    const int32_t token = sample.tokens[node];
    if (token < 0) {
      prices.push_back(sample.values[node]);
    } else {
      text += characters().at(token);
    }
  }
  return read_prompt(text, prices, names);
}

class PromptText : public TaskText {
 public:
  PromptText(const std::vector<Question>& questions, const PromptForm& form)
      : questions_(questions), names_(form.names), prices_(form.prices) {
    constexpr std::string_view asked[] = {"CatA", "CatA and CatB", "CatA, CatB and CatD",
                                          "CatA, CatB, CatD and CatE"};
    form_ = fmt::format("a prompt, as 'CatA, 1.20, ..., {}Find {} of categories {}.'",
                        names_.distractors > 0 ? "Cat+D, ... " : "", word_of(questions.front()),
                        asked[names_.asked - 1]);
  }

  std::string_view form() const override { return form_; }
  int length_of(std::string_view line) const override {
    return static_cast<int>(read_prompt(line, {}, names_).symbols.size());
  }
  void read(std::string_view line, int length, const SampleRoom& room) const override {
    const MixedPrompt prompt = read_prompt(line, {}, names_);
    if (static_cast<int>(prompt.symbols.size()) != length) {
      throw Error(ExitCode::data,
                  fmt::format("a prompt of {} categories with a price", prompt.symbols.size()),
                  fmt::format("{}: the model was trained on prompts of so many", length));
    }
    if (std::ranges::find(questions_, prompt.question) == questions_.end()) {
      throw Error(ExitCode::data, fmt::format("a question for the {}", word_of(prompt.question)),
                  "a question as in training: " + form_);
    }
    write_sample(prompt, prices_, room);
  }
  std::string node(int32_t token, std::span<const float> values) const override {
    if (token < 0) return written_price(values[0]);
    return std::string(1, characters().at(token));
  }
  std::string answer(int32_t /*label*/) const override { return ""; }

 private:
  std::vector<Question> questions_;
  PromptNames names_;
  PricePlaces prices_;
  std::string form_;
};

class MixedType final : public Task {
 public:
  MixedType(std::string_view name, std::string_view description, std::vector<Question> questions,
            const PromptForm& form = {})
      : name_(name),
        description_(description),
        questions_(std::move(questions)),
        form_(form),
        text_(questions_, form_) {}

  std::string_view name() const override { return name_; }
  std::string_view description() const override { return description_; }

  std::vector<TaskParameter> parameters() const override {
    constexpr PromptNames paper;
    return {{"asked", "categories that a question names", paper.asked, 1, paper.asked},
            {"distractors", "names without a price", paper.distractors, 0, paper.distractors},
            {"prices",
             "where they stand: after the text, or each after its name",
             0,
             0,
             0,
             {"last", "inside"}},
            {"symbols", "of tests: none of training's, or the same", 0, 0, 0, {"other", "same"}}};
  }
  std::unique_ptr<const Task> variant(std::span<const int> values) const override {
    return std::make_unique<MixedType>(
        name_, description_, questions_,
        PromptForm{.names = {.asked = values[0], .distractors = values[1]},
                   .prices = static_cast<PricePlaces>(values[2]),
                   .same_symbols = values[3] == 1});
  }

  // The answer is read at the first character.
  TaskShape shape(int length) const override {
    check_categories(length, form_.names);
    return {.real_nodes = text_length(length, form_.names) + length,
            .vocabulary = static_cast<int>(characters().size()),
            .read_nodes = 1};
  }
  int shortest_length() const override { return fewest_categories(form_.names); }
  bool supports_variable_length() const override { return false; }

  std::vector<std::pair<std::string, std::string>> settings() const override {
    return {{"width", "32"},      {"heads", "2"},         {"depth", "3"},
            {"mlp-width", "32"},  {"positions", "added"}, {"range", "5"},
            {"samples", "50000"}, {"batch", "1000"},      {"plateau-patience", "10"}};
  }
  const TaskText* text() const override { return &text_; }
  std::vector<TestAxis> test_axes() const override {
    return {{"c", "prices in [0, range c], symbols that training never shows or the same"},
            {"swapped", "1: the prompt asks about others than the answer; 0: about the same"},
            {"symbols", "0: symbols of training, 1: symbols that training never shows"}};
  }

  void make_sample(RandomStream& random, const Sampling& sampling, int length,
                   const SampleRoom& room) const override {
    const bool unseen = sampling.axis == "symbols" ? is_one("symbols", sampling.x)
                                                   : sampling.is_test && !form_.same_symbols;
    PromptDraw draw{.categories = length,
                    .alphabet = unseen ? test_symbols : training_symbols,
                    .range = sampling.range,
                    .names = form_.names};
    draw.question = questions_[random.below(static_cast<uint32_t>(questions_.size()))];
    MixedPrompt prompt = draw_prompt(random, draw);
    std::ranges::fill(room.targets, 0.0f);
    room.targets[0] = prompt.answer();
    if (sampling.axis == "swapped" && is_one("swapped", sampling.x)) draw_asked(random, prompt);
    write_sample(prompt, form_.prices, room);
  }

  std::vector<Baseline> baselines() const override {
    return {
        {.name = "query-blind",
         .description = "the mean of the answer over every choice of categories: knows "
                        "the prices and what is asked, not about which",
         .predict =
             [names = form_.names](int, const SampleView& sample, std::span<float> outputs) {
               const MixedPrompt prompt = read_sample(names, sample);
               outputs[0] = query_blind_answer(prompt.question, prompt.prices, names.asked);
             }},
        {.name = "oracle",
         .description = "the answer to what the prompt asks",
         .predict = [names = form_.names](int, const SampleView& sample, std::span<float> outputs) {
           outputs[0] = read_sample(names, sample).answer();
         }}};
  }

 private:
  static bool is_one(std::string_view axis, double x) {
    if (x == 0 || x == 1) return x == 1;
    throw Error(ExitCode::usage, fmt::format("{} = {}", axis, x), "0 or 1");
  }

  std::string_view name_, description_;
  std::vector<Question> questions_;
  PromptForm form_;
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
