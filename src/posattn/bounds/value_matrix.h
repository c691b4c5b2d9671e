// The matrix that a model of two streams without an MLP of values writes: f(s, x) = M(s) x. Tokens
// and positions s decide M, and the numbers x flow through it, so M is read off with a forward pass
// for each number, in double. For a model that is meant to move and add numbers the exact answer is
// R x with a matrix R of zeros and ones. Then the error is (M - R) x for every x in R^n:
//   |f(s, x) - R x| <= a max_i sum_j |M_ij - R_ij|   for numbers in [-a, a]
// and R is the matrix nearest to M wherever all |M_ij - R_ij| < 1/2.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "posattn/model/file/model_file.h"
#include "posattn/model/spec/batch.h"
#include "posattn/tasks/task.h"

namespace posattn::bounds {

// Why a model writes no such matrix; empty where it does.
std::string matrix_broken_by(const ModelSpec& spec);

struct ValueMatrix {
  std::vector<int> inputs;      // places of the numbers in the sample's, one for each column
  std::vector<double> entries;  // [outputs that count, inputs]

  int64_t rows() const { return static_cast<int64_t>(entries.size() / inputs.size()); }
  std::vector<double> rounded() const;  // each entry the nearer of 0 and 1
  double distance() const;              // max |M_ij - R_ij|, R the rounded one
  double row_distance() const;          // max_i sum_j |M_ij - R_ij|
};

// Of one sample. A number that is 0, as where a node has none, adds nothing: it has no column.
// Throws Error(configuration) for another model, Error(data) for a sample of zeros.
ValueMatrix value_matrix(const Model& model, const Batch& one_sample);

// R x, added in double: exact where the sums are.
std::vector<double> rounded_answer(const ValueMatrix& matrix, const Batch& one_sample);

// How often the rounded matrix is right on samples of a task.
struct MatrixShare {
  int64_t samples = 0, right = 0;
  double distance = 0, row_distance = 0;  // the largest
  // The share of all samples of the task, with the probability `confidence` of the samples drawn:
  //   right share >= 1 - p,  kl(wrong / n || p) = ln(1 / (1 - confidence)) / n
  // which is Chernoff's bound. Without a wrong one it is that of Clopper and Pearson.
  double confidence = 0, at_least = 0;
};
struct MatrixRequest {
  const Model* model = nullptr;
  const Task* task = nullptr;
  int64_t samples = 1000;
  bool all = false;  // every symbol input of the task, once, in place of samples
  uint64_t seed = 0;
  double confidence = 0.99;
  int threads = 1;
};
// Samples of the training range. A matrix is right where it gives the task's answers exactly, as
// floats have them: the numbers are drawn, so a wrong matrix gives them with probability zero.
// `all` is a proof for a task that moves and adds numbers: they are powers of two there, so no
// other matrix of zeros and ones gives the same answers. Throws Error(configuration) for a task
// whose symbol inputs are too many or cannot be listed.
MatrixShare matrix_share(const MatrixRequest& request);

}  // namespace posattn::bounds
