#include "posattn/kernels/generic/normalisation.h"

#include <cmath>

namespace posattn::generic {
namespace {

constexpr double norm_epsilon = 1e-5;

// Mean and 1 / deviation of a row.
struct RowMoments {
  RowMoments(int64_t columns, const double* x) {
    for (int64_t c = 0; c < columns; ++c) mean += x[c];
    mean /= static_cast<double>(columns);
    double square = 0;
    for (int64_t c = 0; c < columns; ++c) square += (x[c] - mean) * (x[c] - mean);
    inverse = 1 / std::sqrt(square / static_cast<double>(columns) + norm_epsilon);
  }
  double normalised(double x) const { return (x - mean) * inverse; }
  double mean = 0, inverse = 0;
};

}  // namespace

void layer_norm(int64_t rows, int64_t columns, const double* x, const double* gain,
                const double* shift, double* y, const TileKernels&) {
  for (int64_t r = 0; r < rows; ++r, x += columns, y += columns) {
    const RowMoments row(columns, x);
    for (int64_t c = 0; c < columns; ++c) y[c] = gain[c] * row.normalised(x[c]) + shift[c];
  }
}

void layer_norm_gradient(int64_t rows, int64_t columns, const double* x, const double* gain,
                         const double* dy, double* dx, double* dgain, double* dshift,
                         const TileKernels&) {
  for (int64_t r = 0; r < rows; ++r, x += columns, dy += columns, dx += columns) {
    const RowMoments row(columns, x);
    double mean = 0, slope = 0;  // of g = gain dy, and of g with the normalised x
    for (int64_t c = 0; c < columns; ++c) {
      const double normalised = row.normalised(x[c]), g = gain[c] * dy[c];
      dgain[c] += dy[c] * normalised;
      dshift[c] += dy[c];
      mean += g;
      slope += g * normalised;
    }
    mean /= static_cast<double>(columns);
    slope /= static_cast<double>(columns);
    for (int64_t c = 0; c < columns; ++c) {
      dx[c] = (gain[c] * dy[c] - mean - row.normalised(x[c]) * slope) * row.inverse;
    }
  }
}

}  // namespace posattn::generic
