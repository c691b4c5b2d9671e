// Prompts that mix text and numbers (the paper's mixed-type inputs): categories with a price,
// distractors without one, and a question about some of the categories. Independent of Task, so
// that models of characters and numbers and models of written text share one generator.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "posattn/tasks/question.h"
#include "posattn/tasks/task.h"

namespace posattn {

// Names of a prompt beside those of its priced categories; the paper's are the standard.
struct PromptNames {
  int asked = 4, distractors = 2;
};

// A category's name is "Cat" and a symbol, a distractor's "Cat", a sign and the symbol of a priced
// category. Both are one character, and none stands anywhere else in a prompt. Those of training
// and those of tests are disjoint.
struct PromptSymbols {
  std::string_view symbols;  // 20, in the order in which a prompt has them
  std::string_view signs;    // 2
};
extern const PromptSymbols training_symbols, test_symbols;

struct Distractor {
  int place = 0;  // among all names of the prompt, counted from 0
  char sign = 0, symbol = 0;
};

struct MixedPrompt {
  std::string symbols = {};                  // of the priced categories, in the order of the prompt
  std::vector<float> prices = {};            // of the priced categories
  std::vector<Distractor> distractors = {};  // by place
  Question question = Question::minimum;
  std::vector<int> asked = {};  // categories, in the order in which it names them

  float answer() const;
};

struct PromptDraw {
  int categories = 8;
  PromptSymbols alphabet = training_symbols;
  // Prices lie in [0, high]: two numbers drawn by the rule of ValueRange are the ends between which
  // the prices are uniform, so a range is drawn inside a range. (Integers: uniform in [0, high).)
  // With these prices the best answer to an unknown question has the error at which the published
  // training losses of positional models stand.
  ValueRange range = {};
  Question question = Question::minimum;
  PromptNames names = {};
};
// The least number of categories: a question and the distractors name different ones.
int fewest_categories(const PromptNames& names);
// Throws Error(configuration) for fewer, or more than twenty.
void check_categories(int categories, const PromptNames& names = {});
MixedPrompt draw_prompt(RandomStream& random, const PromptDraw& draw);
// Another question of the same kind: categories drawn anew.
void draw_asked(RandomStream& random, MixedPrompt& prompt);

// All names, then the question, without prices: as long for every prompt of as many categories. Its
// first character is the C of a name, whatever is asked; a network's answer is read there.
// "CatACat+DCatB...CatVFind min of categories CatB, CatA, CatV and CatD"
std::string text_of(const MixedPrompt& prompt);
int text_length(int categories, const PromptNames& names = {});
// How many characters of the text stand before each price, where it follows its category's name.
std::vector<size_t> price_places(const MixedPrompt& prompt);

// The prompt as people write it, with the prices after their names:
// "CatA, 001.20, Cat+D, CatB, 003.41, ..., CatV, 000.77. Find min of categories CatB, ... and
// CatD."
std::string written(const MixedPrompt& prompt);
std::string written_price(double price);  // "003.41": the format 06.2f
// What a reader of the written prompt knows: prices of two decimals.
void round_to_cents(MixedPrompt& prompt);

// Reads what `written` or `text_of` gives; separators may be left out, and numbers may have any
// digits. With `prices` the text has none. Throws Error(data) that says at which character.
MixedPrompt read_prompt(std::string_view text, std::span<const float> prices = {},
                        const PromptNames& names = {});

}  // namespace posattn
