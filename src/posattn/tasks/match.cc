// Matches (arXiv 2306.02896): each node holds a number from 0 to M - 1 and answers whether it and
// the number of some node (match-two), or the numbers of some two nodes (match-three), sum to zero
// modulo M. A node may be taken twice, and may be the one that asks.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>

#include "posattn/base/error.h"
#include "posattn/base/text.h"
#include "posattn/tasks/task.h"

namespace posattn {
namespace {

// Which residues are there, and which are sums of two that are.
std::vector<uint8_t> residues(std::span<const int32_t> numbers, int modulus) {
  std::vector<uint8_t> there(modulus);
  for (const int32_t number : numbers) there[number] = 1;
  return there;
}
std::vector<uint8_t> sums_of_two(const std::vector<uint8_t>& there) {
  std::vector<uint8_t> sums(there.size());
  for (size_t a = 0; a < there.size(); ++a) {
    for (size_t b = 0; b < there.size() && there[a] != 0; ++b) {
      if (there[b] != 0) sums[(a + b) % there.size()] = 1;
    }
  }
  return sums;
}

// "3 1 4"
class NumbersText final : public TaskText {
 public:
  explicit NumbersText(int modulus)
      : modulus_(modulus),
        form_(fmt::format("whole numbers from 0 to {}, as 0 1 0", modulus - 1)) {}
  std::string_view form() const override { return form_; }
  int length_of(std::string_view line) const override {
    return static_cast<int>(words_of(line).size());
  }
  void read(std::string_view line, int length, const SampleRoom& room) const override {
    const std::vector<std::string> words = words_of(line);
    if (static_cast<int>(words.size()) != length) {
      throw Error(ExitCode::data, fmt::format("{} numbers", words.size()),
                  fmt::format("{}, as in training", length));
    }
    for (int i = 0; i < length; ++i) {
      const std::string& word = words[i];
      int32_t& number = room.tokens[i];
      const auto [end, fault] = std::from_chars(word.data(), word.data() + word.size(), number);
      if (fault != std::errc() || *end != 0 || number < 0 || number >= modulus_) {
        throw Error(ExitCode::data, fmt::format("'{}' among the numbers", printable(word)), form_);
      }
    }
  }
  std::string node(int32_t token, std::span<const float> /*values*/) const override {
    return std::to_string(token);
  }
  std::string answer(int32_t label) const override {
    return label < 0 ? "?" : label == 1 ? "+" : "-";
  }

 private:
  static std::vector<std::string> words_of(std::string_view line) {
    std::istringstream stream{std::string(line)};
    std::vector<std::string> words;
    for (std::string word; stream >> word;) words.push_back(word);
    return words;
  }

  int modulus_;
  std::string form_;
};

class Match final : public Task {
 public:
  Match(bool three, int modulus) : three_(three), modulus_(modulus), text_(modulus) {}

  std::string_view name() const override { return three_ ? "match-three" : "match-two"; }
  std::string_view description() const override {
    return three_ ? "whether a number and two others sum to zero modulo M"
                  : "whether a number and another one sum to zero modulo M";
  }
  std::vector<TaskParameter> parameters() const override {
    return {{"modulus", "M; numbers are 0 to M - 1", 17, 2, 1024}};
  }
  std::unique_ptr<const Task> variant(std::span<const int> values) const override {
    return std::make_unique<Match>(three_, values[0]);
  }
  TaskShape shape(int length) const override {
    return {.real_nodes = length, .data_columns = 0, .output_columns = 2, .vocabulary = modulus_};
  }
  Loss loss() const override { return Loss::cross_entropy; }
  const TaskText* text() const override { return &text_; }
  std::vector<std::pair<std::string, std::string>> settings() const override {
    return {{"length", "16"}, {"test-axis", fmt::format("values={},{}", modulus_ / 2, modulus_)}};
  }
  std::vector<TestAxis> test_axes() const override {
    return {{"values", "numbers from 0 to this - 1, at most M", "different numbers", true}};
  }

  void make_sample(RandomStream& random, const Sampling& sampling, int length,
                   const SampleRoom& room) const override {
    const double values = sampling.axis == "values" ? sampling.x : modulus_;
    if (values < 1 || values > modulus_ || values != std::floor(values)) {
      throw Error(ExitCode::usage, fmt::format("values = {} for task {}", values, name()),
                  fmt::format("a whole number from 1 to {}", modulus_));
    }
    for (int i = 0; i < length; ++i) {
      room.tokens[i] = static_cast<int32_t>(random.below(static_cast<uint32_t>(values)));
    }
    std::vector<uint8_t> partners = residues(room.tokens, modulus_);
    if (three_) partners = sums_of_two(partners);
    for (int i = 0; i < length; ++i) {
      room.labels[i] = partners[(modulus_ - room.tokens[i]) % modulus_];
    }
  }

  std::vector<Baseline> baselines() const override {
    const auto always = [](int label) {
      return [label](int length, const SampleView&, std::span<float> outputs) {
        for (int i = 0; i < 2 * length; ++i) outputs[i] = i % 2 == label;
      };
    };
    return {{"always-match", "answers that there is a match", always(1)},
            {"never-match", "answers that there is none", always(0)}};
  }

 private:
  bool three_;
  int modulus_;
  NumbersText text_;
};

}  // namespace

const Task& match_two_task() {
  static const Match task(false, 17);
  return task;
}

const Task& match_three_task() {
  static const Match task(true, 17);
  return task;
}

}  // namespace posattn
