// Scores by distance: s_ij = t[i - j], one Toeplitz matrix per head, with rows and columns of their
// own for scratch nodes. Written once for float and double; a place of the table is found by the
// same function on a GPU.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define POSATTN_EVERYWHERE __host__ __device__
#else
#define POSATTN_EVERYWHERE
#endif

namespace posattn::generic {

// n nodes, the first `real` of them with places in the sequence.
struct RelativeShape {
  int32_t real = 0, scratch = 0, reach = 1;

  POSATTN_EVERYWHERE int32_t nodes() const { return real + scratch; }
  POSATTN_EVERYWHERE int32_t distances() const { return 2 * reach - 1; }
  POSATTN_EVERYWHERE int32_t scratch_columns() const { return scratch + 2; }

  POSATTN_EVERYWHERE int32_t scratch_size() const { return scratch * scratch_columns(); }

  // Where the score of node i attending to node j stands: in t [distances] where both are real,
  // else in u [scratch, scratch_columns].
  POSATTN_EVERYWHERE bool by_distance(int32_t i, int32_t j) const { return i < real && j < real; }
  POSATTN_EVERYWHERE int32_t distance_place(int32_t i, int32_t j) const {
    const int32_t distance = i - j, most = reach - 1;  // farther ones count as the farthest
    return (distance < -most ? -most : distance > most ? most : distance) + most;
  }
  POSATTN_EVERYWHERE int32_t scratch_place(int32_t i, int32_t j) const {
    if (i < real) return (j - real) * scratch_columns();      // real i, scratch j
    if (j < real) return (i - real) * scratch_columns() + 1;  // scratch i, real j
    return (i - real) * scratch_columns() + 2 + (j - real);
  }
};

// Row i of one head's scores, [n], from t and u.
template <class T>
void relative_scores_row(const RelativeShape& shape, const T* t, const T* u, int32_t i, T* row) {
  for (int32_t j = 0; j < shape.nodes(); ++j) {
    row[j] = shape.by_distance(i, j) ? t[shape.distance_place(i, j)] : u[shape.scratch_place(i, j)];
  }
}
// scores [n, n], rows `stride` apart.
template <class T>
void relative_scores(const RelativeShape& shape, const T* t, const T* u, T* scores,
                     int64_t stride) {
  for (int32_t i = 0; i < shape.nodes(); ++i) {
    relative_scores_row(shape, t, u, i, scores + i * stride);
  }
}
// dt +=, du +=
template <class T>
void relative_scores_gradient(const RelativeShape& shape, const T* dscores, int64_t stride, T* dt,
                              T* du) {
  const int32_t n = shape.nodes();
  for (int32_t i = 0; i < n; ++i) {
    for (int32_t j = 0; j < n; ++j) {
      const T d = dscores[i * stride + j];
      if (shape.by_distance(i, j)) {
        dt[shape.distance_place(i, j)] += d;
      } else {
        du[shape.scratch_place(i, j)] += d;
      }
    }
  }
}

}  // namespace posattn::generic
