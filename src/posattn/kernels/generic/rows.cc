#include "posattn/kernels/generic/rows.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "posattn/kernels/generic/product.h"

namespace posattn::generic {
namespace {

// Lower than any score, and finite: differences of scores stay numbers.
constexpr double unread = -1e30;

// Eight sums side by side, added in one order: the same bits with any compiler.
template <class T>
T dot(int64_t size, const T* x, const T* y) {
  constexpr int lanes = 8;
  T sums[lanes] = {};
  int64_t c = 0;
  for (; c + lanes <= size; c += lanes) {
    for (int lane = 0; lane < lanes; ++lane) sums[lane] += x[c + lane] * y[c + lane];
  }
  for (int lane = 0; c < size; ++c, ++lane) sums[lane] += x[c] * y[c];
  return ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
}

}  // namespace

// As TileKernels has them.
void normalise(int64_t vectors, int64_t size, int64_t stride, double norm, double* x,
               double* inverse, int64_t inverse_stride) {
  for (int64_t v = 0; v < vectors; ++v, x += stride, inverse += inverse_stride) {
    const double square = dot(size, x, x);
    *inverse = square > 0 ? 1 / std::sqrt(square) : 0;
    for (int64_t c = 0; c < size; ++c) x[c] *= norm * *inverse;
  }
}
void normalise(int64_t vectors, int64_t size, int64_t stride, float norm, float* x, float* inverse,
               int64_t inverse_stride) {
  tile_kernels().to_norm(vectors, size, stride, norm, x, inverse, inverse_stride);
}

double normalise_gradient(int64_t vectors, int64_t size, int64_t stride, double norm,
                          const double* inverse, int64_t inverse_stride, const double* y,
                          double* dy) {
  double all = 0;
  for (int64_t v = 0; v < vectors; ++v, y += stride, dy += stride, inverse += inverse_stride) {
    const double along = dot(size, dy, y), share = along / (norm * norm);
    for (int64_t c = 0; c < size; ++c) dy[c] = norm * *inverse * (dy[c] - y[c] * share);
    all += along;
  }
  return all;
}
float normalise_gradient(int64_t vectors, int64_t size, int64_t stride, float norm,
                         const float* inverse, int64_t inverse_stride, const float* y, float* dy) {
  return tile_kernels().to_norm_gradient(vectors, size, stride, norm, inverse, inverse_stride, y,
                                         dy);
}

template <class T>
T to_norm(int64_t size, T norm, T* x) {
  T inverse = 0;
  normalise(1, size, size, norm, x, &inverse, 1);
  return inverse;
}

template <class T>
T to_norm_gradient(int64_t size, T norm, T inverse, const T* y, T* dy) {
  return normalise_gradient(1, size, size, norm, &inverse, 1, y, dy);
}

template <class T>
void embed(int64_t rows, int64_t columns, const int32_t* tokens, const T* table, bool accumulate,
           T* y) {
  for (int64_t r = 0; r < rows; ++r) {
    if (tokens[r] < 0) continue;
    const T* row = table + tokens[r] * columns;
    for (int64_t c = 0; c < columns; ++c) {
      y[r * columns + c] = accumulate ? y[r * columns + c] + row[c] : row[c];
    }
  }
}

template <class T>
void embed_gradient(int64_t rows, int64_t columns, const int32_t* tokens, const T* dy, T* dtable) {
  for (int64_t r = 0; r < rows; ++r) {
    if (tokens[r] < 0) continue;
    T* row = dtable + tokens[r] * columns;
    for (int64_t c = 0; c < columns; ++c) row[c] += dy[r * columns + c];
  }
}

template <class T>
void mask_causal(int64_t nodes, T* scores) {
  for (int64_t i = 0; i < nodes; ++i) {
    std::fill(scores + i * nodes + i + 1, scores + (i + 1) * nodes, T(unread));
  }
}

template <class T>
void rotate(int64_t rows, int64_t vectors, int64_t size, std::span<const int> positions, int sign,
            T* x) {
  // Angles depend on position and pair only: one table for all rows.
  std::vector<T> table(positions.size() * size);
  for (size_t p = 0; p < positions.size(); ++p) {
    for (int64_t c = 0; c + 1 < size; c += 2) {
      const double angle = sign * positions[p] *
                           std::pow(10000.0, -static_cast<double>(c) / static_cast<double>(size));
      table[p * size + c] = static_cast<T>(std::cos(angle));
      table[p * size + c + 1] = static_cast<T>(std::sin(angle));
    }
  }
  for (int64_t r = 0; r < rows; ++r) {
    const T* turn = &table[r % static_cast<int64_t>(positions.size()) * size];
    for (int64_t v = 0; v < vectors; ++v, x += size) {
      for (int64_t c = 0; c + 1 < size; c += 2) {
        const T first = x[c], second = x[c + 1];
        x[c] = first * turn[c] - second * turn[c + 1];
        x[c + 1] = first * turn[c + 1] + second * turn[c];
      }
    }
  }
}

template <class T>
void unit_keys(int64_t rows, int heads, int64_t size, const T* log_scale, T* query_key, T* kept) {
  const int64_t stride = 2 * heads * size, kept_stride = int64_t{2} * heads;
  for (int h = 0; h < heads; ++h, query_key += 2 * size, kept += 2) {
    const T scale = log_scale == nullptr ? T(1) : std::exp(log_scale[h]);
    normalise(rows, size, stride, scale, query_key, kept, kept_stride);
    normalise(rows, size, stride, T(1), query_key + size, kept + 1, kept_stride);
  }
}

template <class T>
void unit_keys_gradient(int64_t rows, int heads, int64_t size, const T* log_scale,
                        const T* query_key, const T* kept, T* d, T* dlog_scale) {
  const int64_t stride = 2 * heads * size, kept_stride = int64_t{2} * heads;
  for (int h = 0; h < heads; ++h, query_key += 2 * size, d += 2 * size, kept += 2) {
    const T scale = log_scale == nullptr ? T(1) : std::exp(log_scale[h]);
    const T along = normalise_gradient(rows, size, stride, scale, kept, kept_stride, query_key, d);
    if (log_scale != nullptr) dlog_scale[h] += along;
    normalise_gradient(rows, size, stride, T(1), kept + 1, kept_stride, query_key + size, d + size);
  }
}

template <class T>
void sign_keys(int64_t rows, int heads, int64_t size, const T* log_scale, T* query_key, T* kept) {
  constexpr T pi = 3.14159265358979323846;
  for (int h = 0; h < heads; ++h) {
    const T of_query = std::exp(log_scale[h]);
    for (int64_t part = 0; part < 2 * rows; ++part) {
      const int64_t at = ((part / 2 * heads + h) * 2 + part % 2) * size;
      T *x = query_key + at, *slope = kept + at;
      const T square = dot(size, x, x), value = part % 2 == 0 ? of_query : T(1);
      const T inverse = square > 0 ? std::sqrt(static_cast<T>(size) / square) : T(0);
      for (int64_t c = 0; c < size; ++c) {
        const T u = pi * inverse * x[c];
        slope[c] = 2 * inverse / (1 + u * u);
        x[c] = value * static_cast<T>((x[c] > 0) - (x[c] < 0));
      }
    }
  }
}

template <class T>
void sign_keys_gradient(int64_t rows, int heads, int64_t size, const T* log_scale,
                        const T* query_key, const T* kept, T* d, T* dlog_scale) {
  for (int h = 0; h < heads; ++h) {
    const T of_query = std::exp(log_scale[h]);
    T sum = 0;
    for (int64_t part = 0; part < 2 * rows; ++part) {
      const int64_t at = ((part / 2 * heads + h) * 2 + part % 2) * size;
      const bool query = part % 2 == 0;
      if (query) sum += dot(size, d + at, query_key + at);
      const T factor = query ? of_query : T(1);
      for (int64_t c = at; c < at + size; ++c) d[c] *= factor * kept[c];
    }
    dlog_scale[h] += sum;
  }
}

template <class T>
void squared_error(int64_t count, T scale, T unit, const T* y, const T* target, const uint8_t* mask,
                   T* dy, double& loss) {
  for (int64_t i = 0; i < count; ++i) {
    dy[i] = 0;
    if (mask && !mask[i]) continue;
    const T error = unit * y[i] - target[i];
    loss += static_cast<double>(error) * error;
    dy[i] = 2 * scale * unit * error;
  }
}

template <class T>
void cross_entropy(int64_t rows, int64_t classes, T scale, const T* y, const int32_t* labels, T* dy,
                   double& loss, const TileKernels& kernels) {
  for (int64_t r = 0; r < rows; ++r, y += classes, dy += classes) {
    if (labels[r] < 0) {
      std::fill_n(dy, classes, T(0));
      continue;
    }
    const int64_t largest = std::max_element(y, y + classes) - y;
    std::copy_n(y, classes, dy);
    softmax_rows(1, classes, dy, kernels);
    // dy[largest] is 1 / sum of exp(y - y[largest]).
    loss += static_cast<double>(y[largest] - y[labels[r]]) - std::log(dy[largest]);
    for (int64_t c = 0; c < classes; ++c) dy[c] *= scale;
    dy[labels[r]] -= scale;
  }
}

#define POSATTN_INSTANTIATE(T)                                                                   \
  template void embed(int64_t, int64_t, const int32_t*, const T*, bool, T*);                     \
  template void embed_gradient(int64_t, int64_t, const int32_t*, const T*, T*);                  \
  template void mask_causal(int64_t, T*);                                                        \
  template T to_norm(int64_t, T, T*);                                                            \
  template T to_norm_gradient(int64_t, T, T, const T*, T*);                                      \
  template void unit_keys(int64_t, int, int64_t, const T*, T*, T*);                              \
  template void unit_keys_gradient(int64_t, int, int64_t, const T*, const T*, const T*, T*, T*); \
  template void sign_keys(int64_t, int, int64_t, const T*, T*, T*);                              \
  template void sign_keys_gradient(int64_t, int, int64_t, const T*, const T*, const T*, T*, T*); \
  template void rotate(int64_t, int64_t, int64_t, std::span<const int>, int, T*);                \
  template void squared_error(int64_t, T, T, const T*, const T*, const uint8_t*, T*, double&);   \
  template void cross_entropy(int64_t, int64_t, T, const T*, const int32_t*, T*, double&,        \
                              const TileKernels&);
POSATTN_INSTANTIATE(float)
POSATTN_INSTANTIATE(double)
#undef POSATTN_INSTANTIATE

}  // namespace posattn::generic
