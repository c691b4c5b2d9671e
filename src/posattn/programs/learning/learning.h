// Learning algorithms as Transformers (arXiv 2306.04637): examples (x_j, y_j) and a query x stand
// in one sample, and the network learns weights w from the examples and answers <w, x>. Nodes: the
// query first, with y = 0, then N examples. Columns: [x (d) | y]. Node 0 has the answer.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "posattn/model/file/model_file.h"
#include "posattn/programs/language/language.h"
#include "posattn/programs/learning/token_network.h"

namespace posattn {

// What an algorithm answers, and how an error of the arithmetic is measured.
struct Learned {
  double answer = 0;
  double size = 0;  // |x| times the largest |w| on the way
  // Where weights are chosen by a loss: how far apart the two answers are, and by how much the
  // choice changes when both losses are off by a part of themselves.
  double apart = 0, steepness = 0;

  // How far an answer may be off, if every sum is off by this part of its size.
  double bound(double part) const { return part * size + apart * std::min(1.0, part * steepness); }
};

class LearningProgram;

struct LearningAlgorithm {
  const char* name;
  const char* description;
  int fewest_examples;
  // With their defaults for so many examples.
  std::vector<ProgramParameter> (*parameters)(int examples);
  TokenNetwork (*network)(const LearningProgram& program);
  // The same steps in plain double.
  Learned (*learn)(const LearningProgram& program, std::span<const double> sample);
};

const std::vector<LearningAlgorithm>& learning_algorithms();
const LearningAlgorithm* find_learning_algorithm(std::string_view name);  // null: there is none

class LearningProgram {
 public:
  // `nodes`: the query and the examples. Throws Error(usage) for settings that the algorithm does
  // not take and for too few nodes.
  LearningProgram(const LearningAlgorithm& algorithm, int nodes, const Settings& settings);

  static bool takes(const LearningAlgorithm& algorithm, int64_t nodes);

  const LearningAlgorithm& algorithm() const { return *algorithm_; }
  const std::vector<ProgramParameter>& parameters() const { return parameters_; }
  double operator[](std::string_view parameter) const;
  int whole(std::string_view parameter) const { return static_cast<int>((*this)[parameter]); }
  int nodes() const { return nodes_; }
  int examples() const { return nodes_ - 1; }
  int columns() const { return whole("d") + 1; }  // of a node's data

  TokenNetwork network() const { return algorithm_->network(*this); }
  Learned learn(std::span<const double> sample) const { return algorithm_->learn(*this, sample); }

 private:
  const LearningAlgorithm* algorithm_;
  int nodes_;
  std::vector<ProgramParameter> parameters_;
};

// The network with its algorithm in the file's notes.
Model compile(const LearningProgram& program);

// Whether compile(LearningProgram) wrote this model, or one that says so.
bool is_learning(const Model& model);
// The program of such a model. Throws Error(data) for an algorithm or settings that are not known.
LearningProgram carried_learning(const Model& model, const std::string& path);

}  // namespace posattn
