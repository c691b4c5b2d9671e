// Softmax of tile_kernels.h and its gradient, a part of isa_kernels.cc.
#pragma once

#include <math.h>
#include <stdint.h>

#include "posattn/kernels/cpu/vector.h"

namespace posattn {
namespace {

inline Vec larger(Vec a, Vec b) { return a > b ? a : b; }

// Four at a time, since a maximum waits for the one before it.
inline Vec largest_of(int64_t whole, const float* x) {
  Vec largest[4];
  for (Vec& v : largest) v = broadcast(-INFINITY);
  int64_t c = 0;
  for (; c + 4 * lanes <= whole; c += 4 * lanes) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) largest[i] = larger(load(x + c + i * lanes), largest[i]);
  }
  for (; c < whole; c += lanes) largest[0] = larger(load(x + c), largest[0]);
  return larger(larger(largest[0], largest[1]), larger(largest[2], largest[3]));
}

// Sum of the products of whole vectors. Long rows have four sums, since each waits for its last
// addition; short ones have one, as they always had.
inline Vec products_of(int64_t whole, const float* a, const float* b) {
  constexpr int64_t long_row = 96;
  Vec sum[4] = {};
  int64_t c = 0;
  for (; whole >= long_row && c + 4 * lanes <= whole; c += 4 * lanes) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) sum[i] += load(a + c + i * lanes) * load(b + c + i * lanes);
  }
  for (; c < whole; c += lanes) sum[0] += load(a + c) * load(b + c);
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

// Rows that go through each pass together, so that one's reduction to a single number is hidden
// behind the others' work; few enough that long ones stay in the first-level cache.
constexpr int64_t most_together = 8;
inline int64_t rows_together(int64_t columns) {
  const int64_t count = 4096 / (columns + 1);
  return count < 2 ? 2 : count > most_together ? most_together : count;
}

void softmax_few_rows(int64_t rows, int64_t columns, int64_t ld, float* x) {
  const int64_t whole = columns / lanes * lanes, part = columns - whole;
  // A whole vector where there is room: what follows reads it back, and the processor forwards
  // whole stores to loads but not masked ones.
  const bool room = part && whole + lanes <= ld;
  float number[most_together];  // the largest, then what the row is divided by
  for (int64_t r = 0; r < rows; ++r) {
    // A NaN is passed over here but not by exp below, so it reaches the loss and is seen.
    const Vec beside = load_part_or(x + r * ld + whole, part, -INFINITY);
    number[r] = horizontal_max(larger(largest_of(whole, x + r * ld), beside));
  }
  for (int64_t r = 0; r < rows; ++r) {
    float* row = x + r * ld;
    Vec sums{};
    if (part) {
      // The lanes beyond `columns` hold exp(-inf) = 0.
      sums = exp_nonpositive(load_part_or(row + whole, part, -INFINITY) - number[r]);
      if (room) {
        store(row + whole, sums);
      } else {
        store_part(row + whole, sums, part);
      }
    }
    for (int64_t c = 0; c < whole; c += lanes) {
      const Vec e = exp_nonpositive(load(row + c) - number[r]);
      store(row + c, e);
      sums += e;
    }
    number[r] = horizontal_sum(sums);
  }
  for (int64_t r = 0; r < rows; ++r) {
    float* row = x + r * ld;
    const float scale = 1.0f / number[r];
    int64_t c = 0;
    for (; c + lanes <= (room ? whole + lanes : columns); c += lanes) {
      store(row + c, load(row + c) * scale);
    }
    if (c < columns) store_part(row + c, load_part(row + c, part) * scale, part);
    for (c = room ? c : columns; c + lanes <= ld; c += lanes) store(row + c, Vec{});
    for (; c < ld; ++c) row[c] = 0;
  }
}

void softmax_rows(int64_t rows, int64_t columns, int64_t ld, float* x) {
  const int64_t together = rows_together(columns);
  for (int64_t r = 0; r < rows; r += together) {
    softmax_few_rows(rows - r < together ? rows - r : together, columns, ld, x + r * ld);
  }
}

void softmax_few_rows_gradient(int64_t rows, int64_t columns, int64_t ld, const float* a,
                               float* da) {
  const int64_t whole = columns / lanes * lanes, part = columns - whole;
  float dot[most_together];
  for (int64_t r = 0; r < rows; ++r) {
    const float *row = a + r * ld, *drow = da + r * ld;
    Vec dots = products_of(whole, row, drow);
    if (part) dots += load_part(row + whole, part) * load_part(drow + whole, part);
    dot[r] = horizontal_sum(dots);
  }
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = a + r * ld;
    float* drow = da + r * ld;
    for (int64_t c = 0; c < whole; c += lanes) {
      store(drow + c, load(row + c) * (load(drow + c) - dot[r]));
    }
    if (part) {
      const Vec last = load_part(row + whole, part) * (load_part(drow + whole, part) - dot[r]);
      if (whole + lanes <= ld) {
        store(drow + whole, last);
      } else {
        store_part(drow + whole, last, part);
      }
    }
  }
}

void softmax_rows_gradient(int64_t rows, int64_t columns, int64_t ld, const float* a, float* da) {
  const int64_t together = rows_together(columns);
  for (int64_t r = 0; r < rows; r += together) {
    softmax_few_rows_gradient(rows - r < together ? rows - r : together, columns, ld, a + r * ld,
                              da + r * ld);
  }
}

// The sum of exponents in exp_nonpositive holds for x up to 88 as well.
inline Vec exp_of(Vec x) {
  constexpr float most = 88.0f;
  return x > most ? broadcast(INFINITY) : exp_nonpositive(x);
}

void exponential(int64_t count, const float* x, float* y) {
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) store(y + i, exp_of(load(x + i)));
  if (i < count) store_part(y + i, exp_of(load_part(x + i, count - i)), count - i);
}

void with_dots(int64_t rows, int64_t columns, const float* dy, int64_t lddy, const float* y,
               int64_t ldy, float* out, int64_t ldo) {
  const int64_t whole = columns / lanes * lanes, part = columns - whole;
  for (int64_t r = 0; r < rows; ++r, dy += lddy, y += ldy, out += ldo) {
    Vec dots{};
    for (int64_t c = 0; c < whole; c += lanes) {
      const Vec v = load(dy + c);
      store(out + c, v);
      dots += v * load(y + c);
    }
    if (part) {
      const Vec v = load_part(dy + whole, part);
      store_part(out + whole, v, part);
      dots += v * load_part(y + whole, part);
    }
    out[columns] = -horizontal_sum(dots);
  }
}

}  // namespace
}  // namespace posattn
