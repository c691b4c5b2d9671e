#include "posattn/tasks/written_prompt.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <stdexcept>

#include "posattn/base/error.h"
#include "posattn/tasks/mixed_prompt.h"
#include "posattn/tasks/task_text.h"
#include "posattn/text/byte_pair_tokeniser.h"

namespace posattn {
namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

constexpr PromptNames standard_names;
constexpr char separator = '\n';         // stands nowhere else
constexpr double first_too_long = 1000;  // more than three digits before the point

std::shared_ptr<const Tokeniser> byte_tokeniser() {
  static const auto shared = std::make_shared<const ByteTokeniser>();
  return shared;
}

// How many tokens a piece of a prompt has at most, whatever its symbols and digits are. Tokens
// never reach over the beginning of a word, so pieces that begin there can be counted alone.
class TokenBounds {
 public:
  explicit TokenBounds(const Tokeniser& tokeniser) : tokeniser_(tokeniser) {
    for (int number = 0; number < 1000; ++number) {
      whole_ = std::max(whole_, count(fmt::format(" {:03}", number)));
      whole_ = std::max(whole_, count(fmt::format("{:03}", number)));
    }
    for (int number = 0; number < 100; ++number) {
      fraction_ = std::max(fraction_, count(fmt::format(".{:02}", number)));
    }
  }

  int number() const { return whole_ + fraction_; }

  int word(std::string_view word) const {
    if (word.front() >= '0' && word.front() <= '9') return number() + 1;  // and its separator
    int most = 0;
    for (const std::string_view space : {"", " "}) {
      std::string changed = std::string(space) + std::string(word);
      most = std::max(most, count(changed));
      if (!word.starts_with("Cat") || word.size() < 4) continue;
      const size_t sign = space.size() + 3;
      if (is_sign(word[3]) && word.size() > 4 && is_symbol(word[4])) {
        for (const char other : signs()) {
          changed[sign] = other;
          most = std::max(most, with_any_symbol(changed, sign + 1));
        }
      } else if (is_symbol(word[3])) {
        most = std::max(most, with_any_symbol(changed, sign));
      }
    }
    return most;
  }

 private:
  static std::string signs() {
    return std::string(training_symbols.signs) + std::string(test_symbols.signs);
  }
  static std::string symbols() {
    return std::string(training_symbols.symbols) + std::string(test_symbols.symbols);
  }
  static bool is_sign(char c) { return signs().find(c) != std::string::npos; }
  static bool is_symbol(char c) { return symbols().find(c) != std::string::npos; }

  int with_any_symbol(std::string word, size_t at) const {
    int most = 0;
    for (const char symbol : symbols()) {
      word[at] = symbol;
      most = std::max(most, count(word));
    }
    return most;
  }
  int count(std::string_view text) const {
    return static_cast<int>(tokeniser_.encode(text).size());
  }

  const Tokeniser& tokeniser_;
  int whole_ = 0, fraction_ = 0;
};

class NumberAnswers : public WrittenAnswers {
 public:
  explicit NumberAnswers(std::shared_ptr<const Tokeniser> tokeniser)
      : tokeniser_(std::move(tokeniser)),
        bounds_(*tokeniser_),
        separator_token_(tokeniser_->encode(std::string(1, separator)).at(0)) {}

  const Tokeniser& tokeniser() const override { return *tokeniser_; }
  const TokenBounds& bounds() const { return bounds_; }

  std::span<const int32_t> prompt(std::span<const int32_t> sample) const override {
    const auto at = std::ranges::find(sample, separator_token_);
    return sample.first(std::min<size_t>(at - sample.begin() + 1, sample.size()));
  }
  double answer(std::span<const int32_t> sample) const override {
    const std::span<const int32_t> behind = sample.subspan(prompt(sample).size());
    const auto end = std::ranges::find(behind, tokeniser_->end());
    return parse(tokeniser_->decode({behind.begin(), end})).value();
  }
  std::optional<double> parse(std::string_view text) const override {
    while (text.starts_with(' ')) text.remove_prefix(1);
    while (text.ends_with(' ') || text.ends_with(separator)) text.remove_suffix(1);
    double number = 0;
    const auto result =
        std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
    const bool whole = result.ec == std::errc() && result.ptr == text.data() + text.size();
    // from_chars reads "inf" and "nan" too.
    if (!whole || text.find_first_not_of("-.0123456789") != std::string_view::npos) return {};
    return number;
  }
  int longest_answer() const override { return bounds_.number() + 1; }

 private:
  std::shared_ptr<const Tokeniser> tokeniser_;
  TokenBounds bounds_;
  int32_t separator_token_;
};

class WrittenPrompt : public Task {
 public:
  WrittenPrompt(std::string name, std::string description, std::vector<Question> questions,
                std::shared_ptr<const NumberAnswers> answers, Settings settings)
      : name_(std::move(name)),
        description_(std::move(description)),
        questions_(std::move(questions)),
        answers_(std::move(answers)),
        settings_(std::move(settings)),
        shortest_(most_tokens(standard_names.asked)),
        per_category_(most_tokens(standard_names.asked + 1) - shortest_) {}

  std::string_view name() const override { return name_; }
  std::string_view description() const override { return description_; }
  Loss loss() const override { return Loss::cross_entropy; }
  Settings settings() const override { return settings_; }
  const WrittenAnswers* written_answers() const override { return answers_.get(); }
  int shortest_length() const override { return standard_names.asked; }
  bool supports_variable_length() const override { return false; }
  std::vector<TestAxis> test_axes() const override {
    return {{"c", "prices in [0, range c], symbols that training never shows"}};
  }

  TaskShape shape(int length) const override {
    const int tokens = answers_->tokeniser().size();
    return {.real_nodes = shortest_ + (length - standard_names.asked) * per_category_,
            .data_columns = 0,
            .output_columns = tokens,
            .vocabulary = tokens};
  }

  // Node i holds token i of the text and learns token i + 1. Behind the end nothing counts.
  void make_sample(RandomStream& random, const Sampling& sampling, int length,
                   const SampleRoom& room) const override {
    check_range(sampling.range.high);
    PromptDraw draw{.categories = length,
                    .alphabet = sampling.is_test ? test_symbols : training_symbols,
                    .range = sampling.range,
                    .question = questions_.front()};
    if (questions_.size() > 1) {
      draw.question = questions_[random.below(static_cast<uint32_t>(questions_.size()))];
    }
    MixedPrompt prompt = draw_prompt(random, draw);
    round_to_cents(prompt);
    const Tokeniser& tokeniser = answers_->tokeniser();
    const std::vector<int32_t> text =
        tokeniser.encode(written(prompt) + separator + written_price(prompt.answer()));
    if (text.size() > room.tokens.size()) throw std::logic_error("a prompt above its bound");
    std::ranges::fill(room.tokens, tokeniser.end());
    std::ranges::fill(room.labels, -1);
    std::ranges::copy(text, room.tokens.begin());
    std::copy(text.begin() + 1, text.end(), room.labels.begin());
    room.labels[text.size() - 1] = tokeniser.end();
  }

 private:
  // The answer may be the sum of four prices; all are written with three digits before the point.
  void check_range(double high) const {
    const bool sum = std::ranges::count(questions_, Question::sum) > 0;
    const double most = first_too_long / (sum ? standard_names.asked : 1);
    if (high < most) return;
    throw Error(ExitCode::usage, fmt::format("prices up to {} for task {}", high, name_),
                fmt::format("below {}: they are written as 003.41", most),
                "lower the scale c or the range");
  }

  int most_tokens(int length) const {
    MixedPrompt prompt;
    prompt.symbols.assign(length, training_symbols.symbols.front());
    prompt.prices.assign(length, 0.0f);
    prompt.asked.resize(standard_names.asked);
    for (int i = 0; i < standard_names.distractors; ++i) {
      prompt.distractors.push_back({.place = i,
                                    .sign = training_symbols.signs.front(),
                                    .symbol = training_symbols.symbols.front()});
    }
    int most = 1 + answers_->bounds().number();  // the separator and the answer
    for (const Question question : questions_) {
      prompt.question = question;
      int tokens = 0;
      const std::string text = written(prompt);
      for (size_t at = 0; at < text.size();) {
        const size_t end = std::min(text.find(' ', at), text.size());
        tokens += answers_->bounds().word(std::string_view(text).substr(at, end - at));
        at = end + 1;
      }
      most = std::max(most, 1 + answers_->bounds().number() + tokens);
    }
    return most;
  }

  std::string name_, description_;
  std::vector<Question> questions_;
  std::shared_ptr<const NumberAnswers> answers_;
  Settings settings_;
  int shortest_, per_category_;  // tokens of the shortest prompt with its answer, and of one more
};

// A small decoder from random values, for which any machine has the time.
Settings small_settings() {
  return {{"architecture", "standard"},
          {"range", "5"},
          {"width", "128"},
          {"heads", "4"},
          {"depth", "4"},
          {"mlp-width", "512"},
          {"initial", "gpt"},
          {"samples", "50000"},
          {"epochs", "30"},
          {"batch", "64"},
          {"lr", "1e-3"}};
}

// The paper's fine-tuning; sizes are those of the weights.
Settings gpt2_settings() {
  return {{"architecture", "standard"},
          {"range", "5"},
          {"samples", "50000"},
          {"epochs", "3"},
          {"batch", "16"},
          {"lr", "2e-5"},
          {"validation-samples", "200"},
          {"checkpoint-every", "600"}};  // of some gigabytes
}

// What both share: a decoder as GPT-2's.
Settings with_decoder(Settings settings) {
  const Settings shared = {{"length", "8"},
                           {"scratch-nodes", "0"},
                           {"encoding", "learned"},
                           {"causal", "true"},
                           {"split-heads", "true"},
                           {"join", "add"},
                           {"normalisation", "before"},
                           {"activation", "gelu-tanh"},
                           {"positions", "added"},
                           {"tied-output", "true"},
                           {"optimiser", "adamw"},
                           {"weight-decay", "0.01"},
                           {"schedule", "warmup-linear"},
                           {"warmup-steps", "100"},
                           {"validate-every", "1"},
                           {"test-every", "0"}};
  settings.insert(settings.end(), shared.begin(), shared.end());
  return settings;
}

struct Kind {
  const char *name, *asks;
  std::vector<Question> questions;
};
const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = {
      {"mixed-min", "the least of four named prices", {Question::minimum}},
      {"mixed-sum", "the sum of four named prices", {Question::sum}},
      {"mixed-multitask",
       "the least or the greatest of four named prices",
       {Question::minimum, Question::maximum}}};
  return all;
}

std::string gpt2_name(const Kind& kind) { return fmt::format("{}-gpt2", kind.name); }

std::unique_ptr<const WrittenPrompt> make_task(const Kind& kind, bool with_bytes,
                                               std::shared_ptr<const NumberAnswers> answers) {
  return std::make_unique<const WrittenPrompt>(
      with_bytes ? fmt::format("{}-written", kind.name) : gpt2_name(kind),
      fmt::format("{}, asked and answered in {}", kind.asks,
                  with_bytes ? "text of bytes" : "GPT-2's tokens"),
      kind.questions, std::move(answers),
      with_decoder(with_bytes ? small_settings() : gpt2_settings()));
}

const Task& byte_task(int kind) {
  static const auto answers = std::make_shared<const NumberAnswers>(byte_tokeniser());
  static const std::unique_ptr<const WrittenPrompt> tasks[] = {
      make_task(kinds()[0], true, answers), make_task(kinds()[1], true, answers),
      make_task(kinds()[2], true, answers)};
  return *tasks[kind];
}

}  // namespace

const Task& mixed_min_written_task() { return byte_task(0); }
const Task& mixed_sum_written_task() { return byte_task(1); }
const Task& mixed_multitask_written_task() { return byte_task(2); }

std::shared_ptr<const Task> gpt2_task(std::string_view name,
                                      std::shared_ptr<const Tokeniser> tokeniser) {
  for (const Kind& kind : kinds()) {
    if (name != gpt2_name(kind)) continue;
    return make_task(kind, false, std::make_shared<const NumberAnswers>(std::move(tokeniser)));
  }
  return nullptr;
}

void offer_gpt2_tasks(std::shared_ptr<const Tokeniser> tokeniser) {
  static std::shared_ptr<const Tokeniser> offered;
  if (offered == nullptr) {
    const auto answers = std::make_shared<const NumberAnswers>(tokeniser);
    for (const Kind& kind : kinds()) register_task(make_task(kind, false, answers));
    offered = std::move(tokeniser);
  } else if (*offered->vocabulary() != *tokeniser->vocabulary()) {
    throw Error(ExitCode::configuration, "training with a second vocabulary of a GPT-2",
                "one vocabulary in a program", "train each in a program of its own");
  }
}

void offer_gpt2_tasks(const std::filesystem::path& folder) {
  offer_gpt2_tasks(std::make_shared<const BytePairTokeniser>(read_byte_pair_tokeniser(folder)));
}

}  // namespace posattn
