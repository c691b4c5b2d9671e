// Samples as people write them: one line of text for the nodes of a sample, a word for an answer.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "posattn/text/tokeniser.h"

namespace posattn {

// The buffers of one sample; what the task does not have is empty.
struct SampleRoom {
  std::span<float> values;      // [real_nodes, data_columns]
  std::span<int32_t> tokens;    // [real_nodes]; negative: the node holds numbers
  std::span<float> targets;     // [real_nodes, output_columns], for squared errors
  std::span<int32_t> labels;    // [real_nodes], for cross-entropy; negative: does not count
  std::span<float> pairs = {};  // [real_nodes, real_nodes, pair_columns]
  std::span<int32_t> pair_classes = {};  // [real_nodes, real_nodes]
};

class TaskText {
 public:
  virtual ~TaskText() = default;

  // What a line looks like, for messages: "k and a word, as 2 abcab".
  virtual std::string_view form() const = 0;

  // Fills values and tokens of one sample of `length` from a line. Throws Error(data), which says
  // what is wrong; where the line stands is the caller's to add.
  virtual void read(std::string_view line, int length, const SampleRoom& room) const = 0;

  // The length that a line has, as `read` would want it.
  virtual int length_of(std::string_view line) const = 0;

  // What a node holds: its token, or where that is negative its numbers.
  virtual std::string node(int32_t token, std::span<const float> values) const = 0;

  // The class of an answer; tasks whose answers are numbers have none.
  virtual std::string answer(int32_t label) const = 0;

  // The classes of a sample's nodes as one word; the default has the answer of each. A negative
  // label is one that the model did not decide on.
  virtual std::string answers(std::span<const int32_t> labels) const {
    std::string word;
    for (const int32_t label : labels) word += answer(label);
    return word;
  }
};

// Some tasks have texts as samples: a prompt, and the answer that a model writes behind it token by
// token. Such a task is tested by what the model writes.
class WrittenAnswers {
 public:
  virtual ~WrittenAnswers() = default;

  virtual const Tokeniser& tokeniser() const = 0;
  // The tokens of a sample that are its prompt.
  virtual std::span<const int32_t> prompt(std::span<const int32_t> sample) const = 0;
  // What stands behind it.
  virtual double answer(std::span<const int32_t> sample) const = 0;
  // The number that a written answer says; nothing where it says none.
  virtual std::optional<double> parse(std::string_view text) const = 0;
  virtual int longest_answer() const = 0;  // in tokens, with the one that ends it
};

}  // namespace posattn
