// LayerNorm and vectors of a given length, of tile_kernels.h; a part of isa_kernels.cc.
#pragma once

#include <stdint.h>

#include "posattn/kernels/cpu/vector.h"

namespace posattn {
namespace {

// body(c, count) for the columns c .. c + count - 1, a vector at a time.
template <class Body>
inline __attribute__((always_inline)) void over_columns(int64_t columns, const Body& body) {
  int64_t c = 0;
  for (; c + lanes <= columns; c += lanes) body(c, int64_t{lanes});
  if (c < columns) body(c, columns - c);
}
inline Vec read(const float* p, int64_t count) {
  return count == lanes ? load(p) : load_part(p, count);
}
inline void write(float* p, Vec v, int64_t count) {
  if (count == lanes) {
    store(p, v);
  } else {
    store_part(p, v, count);
  }
}

// Mean and 1 / deviation of a row. A large mean is rounded to a float, so what the differences from
// it still have in common is taken away as well.
struct RowMoments {
  float mean = 0, rest = 0, inverse = 0;

  RowMoments(int64_t columns, const float* x) {
    const float share = 1.0f / static_cast<float>(columns);
    Vec sum{};
    over_columns(columns, [&](int64_t c, int64_t count) { sum += read(x + c, count); });
    mean = horizontal_sum(sum) * share;
    sum = Vec{};
    over_columns(columns, [&](int64_t c, int64_t count) {
      sum += first_of(read(x + c, count) - mean, count);
    });
    rest = horizontal_sum(sum) * share;
    Vec squares{};
    over_columns(columns, [&](int64_t c, int64_t count) {
      const Vec d = first_of(read(x + c, count) - mean - rest, count);
      squares += d * d;
    });
    inverse = 1.0f / __builtin_sqrtf(horizontal_sum(squares) * share + 1e-5f);
  }
  Vec normalised(Vec x) const { return (x - mean - rest) * inverse; }
};

void layer_norm(int64_t rows, int64_t columns, const float* x, const float* gain,
                const float* shift, float* y) {
  for (int64_t r = 0; r < rows; ++r, x += columns, y += columns) {
    const RowMoments row(columns, x);
    over_columns(columns, [&](int64_t c, int64_t count) {
      const Vec normalised = row.normalised(read(x + c, count));
      write(y + c, read(gain + c, count) * normalised + read(shift + c, count), count);
    });
  }
}

void layer_norm_gradient(int64_t rows, int64_t columns, const float* x, const float* gain,
                         const float* dy, float* dx, float* dgain, float* dshift) {
  const float share = 1.0f / static_cast<float>(columns);
  for (int64_t r = 0; r < rows; ++r, x += columns, dy += columns, dx += columns) {
    const RowMoments row(columns, x);
    Vec sums{}, slopes{};  // of g = gain dy, and of g with the normalised x
    over_columns(columns, [&](int64_t c, int64_t count) {
      const Vec normalised = row.normalised(read(x + c, count)), d = read(dy + c, count);
      const Vec g = read(gain + c, count) * d;
      write(dgain + c, read(dgain + c, count) + d * normalised, count);
      write(dshift + c, read(dshift + c, count) + d, count);
      sums += g;
      slopes += g * normalised;
    });
    const float mean = horizontal_sum(sums) * share, slope = horizontal_sum(slopes) * share;
    over_columns(columns, [&](int64_t c, int64_t count) {
      const Vec g = read(gain + c, count) * read(dy + c, count);
      const Vec normalised = row.normalised(read(x + c, count));
      write(dx + c, (g - mean - normalised * slope) * row.inverse, count);
    });
  }
}

void to_norm(int64_t vectors, int64_t size, int64_t stride, float norm, float* x, float* inverse,
             int64_t inverse_stride) {
  for (int64_t v = 0; v < vectors; ++v, x += stride, inverse += inverse_stride) {
    Vec squares{};
    over_columns(size, [&](int64_t c, int64_t count) {
      const Vec part = read(x + c, count);
      squares += part * part;
    });
    const float square = horizontal_sum(squares);
    *inverse = square > 0 ? 1.0f / __builtin_sqrtf(square) : 0.0f;
    const float factor = norm * *inverse;
    over_columns(
        size, [&](int64_t c, int64_t count) { write(x + c, read(x + c, count) * factor, count); });
  }
}

float to_norm_gradient(int64_t vectors, int64_t size, int64_t stride, float norm,
                       const float* inverse, int64_t inverse_stride, const float* y, float* dy) {
  float all = 0;
  const float inverse_square = 1.0f / (norm * norm);
  for (int64_t v = 0; v < vectors; ++v, y += stride, dy += stride, inverse += inverse_stride) {
    Vec products{};
    over_columns(size, [&](int64_t c, int64_t count) {
      products += read(y + c, count) * read(dy + c, count);
    });
    const float along = horizontal_sum(products), share = along * inverse_square;
    const float factor = norm * *inverse;
    over_columns(size, [&](int64_t c, int64_t count) {
      write(dy + c, (read(dy + c, count) - read(y + c, count) * share) * factor, count);
    });
    all += along;
  }
  return all;
}

}  // namespace
}  // namespace posattn
