// One layer of a positional network under construction: who reads which words, and hidden units as
// linear forms over the words of the node and what its heads deliver. Biases are zero; constants
// come from word 0, which is 1 on every node but the scratch node.
#pragma once

#include <vector>

#include "posattn/model/parameters.h"
#include "posattn/simulation/table.h"

namespace posattn::simulation {

using Form = std::vector<double>;  // over [own words | words of head 0 | words of head 1]

// The words that a head reads: at every node the mean over one place or several.
struct HeadReads {
  const std::vector<std::vector<int>>* places = nullptr;  // by node; null: the scratch node
  std::vector<int> words = {};
};

class LayerWriter {
 public:
  LayerWriter(int width, HeadReads first, HeadReads second)
      : width_(width), heads_{std::move(first), std::move(second)}, constants_(width) {}

  Form own(int word, double factor = 1) const;
  // Word `word` of those that a head reads.
  Form read(int head, int word, double factor = 1) const;

  // word += factor relu(form)
  void add_unit(Form form, int word, double factor);
  // word += form, by one unit where it is never negative.
  void keep(const Form& form, int word, bool never_negative = false);
  // word += factor table(form)
  void add_table(const FittedTable& table, const Form& form, int word, double factor = 1);

  int units() const { return static_cast<int>(forms_.size()) + 1; }  // with that of the constants
  void write(const ModelSpec& spec, Parameters<float>& parameters, int layer) const;

 private:
  struct Target {
    int word;
    double factor;
  };
  void write_heads(const ModelSpec& spec, Parameters<float>& parameters, int layer) const;

  int width_;
  HeadReads heads_[2];
  std::vector<Form> forms_;
  std::vector<Target> targets_;
  std::vector<double> constants_;  // of each word
};

Form operator+(Form left, const Form& right);
Form operator-(Form left, const Form& right);

}  // namespace posattn::simulation
