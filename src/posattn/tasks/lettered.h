// Tasks whose samples are items of a letter and a number: each is a node, its letter is the node's
// token. A question about them, where there is one, stands in the nodes before them, which have the
// number 0.
#pragma once

#include "posattn/tasks/task.h"

namespace posattn {

constexpr int letter_count = 26;  // a to z; A to Z are as many others, which training never shows
constexpr int64_t most_listed = 10'000'000;  // symbol inputs

// Throws Error(configuration) for more items than there are letters.
void check_items(int items);

// Different letters in random order, of training or of the axis below.
void draw_letters(RandomStream& random, const Sampling& sampling, std::span<int32_t> letters);
// How many ways there are to choose so many different letters in order; 0: too many to list.
int64_t orders_of_letters(int letters);
// Of items: drawn, or where symbols are listed 1, 2, 4, 8, ...
void draw_numbers(RandomStream& random, const Sampling& sampling, std::span<float> numbers);
// "letters": 0: of training, 1: others.
TestAxis letters_axis();

// What a small model learns these tasks with: 3,000 steps of 48 fresh samples.
std::vector<std::pair<std::string, std::string>> lettered_settings();

// The text of such samples: "a 0.5, b -1".
class LetteredText : public TaskText {
 public:
  // Letters are those of the first `letters` tokens, each at most once; 0: they are names of
  // places, a of the first item, b of the second.
  LetteredText(std::string form, int letters) : form_(std::move(form)), letters_(letters) {}

  std::string_view form() const override { return form_; }
  int length_of(std::string_view line) const override;
  void read(std::string_view line, int length, const SampleRoom& room) const override;
  std::string node(int32_t token, std::span<const float> values) const override;
  std::string answer(int32_t /*label*/) const override { return ""; }

 protected:
  // Whether the last part of a line is a question.
  virtual bool asks() const { return false; }
  // Fills the nodes before the items from the words of the question.
  virtual void read_question(std::span<const std::string_view> /*words*/,
                             std::span<const int32_t> /*letters*/,
                             std::span<int32_t> /*nodes*/) const {}
  [[noreturn]] void refuse(const std::string& what) const;  // throws Error(data)
  // The token of a letter; -1 for another word.
  static int32_t token_of(std::string_view word);

 private:
  std::string form_;
  int letters_;
};

// Tasks in which every node is an item and answers with a number.
class ItemsTask : public Task {
 public:
  explicit ItemsTask(LetteredText text) : text_(std::move(text)) {}

  TaskShape shape(int length) const override {
    check_items(length);
    return {.real_nodes = length, .vocabulary = letter_count, .tokens_and_values = true};
  }
  std::vector<std::pair<std::string, std::string>> settings() const override {
    return lettered_settings();
  }
  const TaskText* text() const override { return &text_; }

 private:
  LetteredText text_;
};

}  // namespace posattn
