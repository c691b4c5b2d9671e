// Norms of a model's own matrices, as files hold them, and how much its MLPs can amplify.
#pragma once

#include "posattn/model/spec/parameters.h"
#include "posattn/model/spec/spec.h"
#include "posattn/simulation/matrix.h"

namespace posattn::bounds {

using simulation::Matrix;

// The largest singular value; 0 without entries. Throws Error(data) where an entry is not finite.
double spectral_norm(const Matrix& matrix);

double frobenius_norm(const Matrix& matrix);
// ||W||_{2,1}: the sum of the lengths of the rows, which are outputs.
double two_one_norm(const Matrix& matrix);

double length_of(const std::vector<double>& vector);

// All three, as tables show them.
struct MatrixNorms {
  double spectral = 0, two_one = 0, frobenius = 0;
};
MatrixNorms norms_of(const Matrix& matrix);

// The matrix [left | right], and the matrix with one row more.
Matrix with_columns(const Matrix& left, const Matrix& right);
Matrix with_row(const Matrix& matrix, const std::vector<double>& row);

struct NamedNorms {
  std::string name;  // "V", "O", "W1", "W2"; of a head: "V.0", "O.0", "QK.0"
  MatrixNorms norms;
};

struct LayerWeightNorms {
  // W_V, W_O and its parts by head, the MLP's W1 and W2, and for each head, where there are queries
  // and keys, the folded W_Q' W_K / sqrt(d_k).
  std::vector<NamedNorms> matrices;
  double mlp_lipschitz = 0;  // ||W1|| ||W2||
  // The largest ||W2 D W1|| met, D the units that are on.
  std::optional<double> mlp_jacobian = {};

  const MatrixNorms& at(const std::string& name) const;  // throws std::out_of_range
};

// `x` [samples, real nodes] are the data that the Jacobian is looked for on; none: not looked for.
// The model must be one that collapse takes.
std::vector<LayerWeightNorms> weight_norms(const ModelSpec& spec,
                                           const Parameters<double>& parameters,
                                           std::span<const double> x);

}  // namespace posattn::bounds
