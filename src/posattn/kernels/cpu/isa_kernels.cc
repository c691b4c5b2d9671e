// Compiled once per instruction set with POSATTN_ISA naming the table and POSATTN_LANES the vector
// length. No standard library templates here (see cmake/InstructionSets.cmake).
#include <math.h>
#include <stdint.h>

#include "posattn/kernels/cpu/activation_kernels.h"
#include "posattn/kernels/cpu/fourier_kernels.h"
#include "posattn/kernels/cpu/normalisation_kernels.h"
#include "posattn/kernels/cpu/product_kernels.h"
#include "posattn/kernels/cpu/tile_kernels.h"
#include "posattn/kernels/cpu/vector.h"

namespace posattn {
namespace {

// ---- softmax ------------------------------------------------------------------------------------
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

// ---- element-wise -------------------------------------------------------------------------------
void relu_gradient(int64_t rows, int64_t columns, const float* y, int64_t ldy, float* dy,
                   int64_t lddy, float* dbias) {
  for (int64_t c = 0; c < columns; c += lanes) {
    const int64_t part = columns - c;
    if (part >= lanes) {
      Vec sum = load(dbias + c);
      for (int64_t r = 0; r < rows; ++r) {
        const Vec g = load(y + r * ldy + c) > 0 ? load(dy + r * lddy + c) : Vec{};
        store(dy + r * lddy + c, g);
        sum += g;
      }
      store(dbias + c, sum);
    } else {
      Vec sum = load_part(dbias + c, part);
      for (int64_t r = 0; r < rows; ++r) {
        const Vec g =
            load_part(y + r * ldy + c, part) > 0 ? load_part(dy + r * lddy + c, part) : Vec{};
        store_part(dy + r * lddy + c, g, part);
        sum += g;
      }
      store_part(dbias + c, sum, part);
    }
  }
}

void column_sums(int64_t rows, int64_t columns, const float* x, int64_t ldx, float* sums) {
  for (int64_t c = 0; c < columns; c += lanes) {
    const int64_t part = columns - c;
    if (part >= lanes) {
      Vec sum = load(sums + c);
      for (int64_t r = 0; r < rows; ++r) sum += load(x + r * ldx + c);
      store(sums + c, sum);
    } else {
      Vec sum = load_part(sums + c, part);
      for (int64_t r = 0; r < rows; ++r) sum += load_part(x + r * ldx + c, part);
      store_part(sums + c, sum, part);
    }
  }
}

typedef float Four __attribute__((vector_size(16), aligned(4), may_alias));

inline void transpose_4x4(const float* x, int64_t ldx, float* y, int64_t ldy) {
  const auto row = [&](int64_t r) { return *reinterpret_cast<const Four*>(x + r * ldx); };
  const Four a = row(0), b = row(1), c = row(2), d = row(3);
  const Four ab0 = __builtin_shufflevector(a, b, 0, 4, 1, 5);
  const Four ab1 = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const Four cd0 = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  const Four cd1 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  *reinterpret_cast<Four*>(y) = __builtin_shufflevector(ab0, cd0, 0, 1, 4, 5);
  *reinterpret_cast<Four*>(y + ldy) = __builtin_shufflevector(ab0, cd0, 2, 3, 6, 7);
  *reinterpret_cast<Four*>(y + 2 * ldy) = __builtin_shufflevector(ab1, cd1, 0, 1, 4, 5);
  *reinterpret_cast<Four*>(y + 3 * ldy) = __builtin_shufflevector(ab1, cd1, 2, 3, 6, 7);
}

void transpose(int64_t rows, int64_t columns, const float* x, int64_t ldx, float* y, int64_t ldy) {
  const int64_t whole_rows = rows / 4 * 4, whole_columns = columns / 4 * 4;
  for (int64_t c = 0; c < whole_columns; c += 4) {
    for (int64_t r = 0; r < whole_rows; r += 4) {
      transpose_4x4(x + r * ldx + c, ldx, y + c * ldy + r, ldy);
    }
  }
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = r < whole_rows ? whole_columns : 0; c < columns; ++c) {
      y[c * ldy + r] = x[r * ldx + c];
    }
  }
}

void sum_parts(int64_t count, int parts, int64_t stride, const float* x, float* sum) {
  for (int64_t i = 0; i < count; i += lanes) {
    const int64_t part = count - i;
    if (part >= lanes) {
      Vec total = load(x + i);
      for (int p = 1; p < parts; ++p) total += load(x + p * stride + i);
      store(sum + i, total);
    } else {
      Vec total = load_part(x + i, part);
      for (int p = 1; p < parts; ++p) total += load_part(x + p * stride + i, part);
      store_part(sum + i, total, part);
    }
  }
}

void adam(const AdamNumbers<float>& n, int64_t count, const float* gradient, float* first,
          float* second, float* weights) {
  for (int64_t i = 0; i < count; ++i) {
    const float g = gradient[i] + n.decay_to_gradient * weights[i];
    const float m = n.beta1 * first[i] + n.rest1 * g;
    const float v = n.beta2 * second[i] + n.rest2 * g * g;
    first[i] = m;
    second[i] = v;
    weights[i] = n.keep * weights[i] -
                 n.step_size * (m / (__builtin_sqrtf(v) / n.root_correction2 + n.epsilon));
  }
}

#ifdef __wasm__
#define POSATTN_ANY_REGISTER "+m"  // it has no registers
#elif POSATTN_LANES == 16
#define POSATTN_ANY_REGISTER "+v"
#else
#define POSATTN_ANY_REGISTER "+x"
#endif

double multiply_add_peak(int64_t iterations) {
  constexpr int chains = 12;
  Vec value[chains];
#pragma GCC unroll 12
  for (int c = 0; c < chains; ++c) value[c] = broadcast(0.5f);
  const Vec factor = broadcast(0.999f), offset = broadcast(1e-3f);
  for (int64_t i = 0; i < iterations; ++i) {
#pragma GCC unroll 12
    for (int c = 0; c < chains; ++c) {
      value[c] = value[c] * factor + offset;
      asm volatile("" : POSATTN_ANY_REGISTER(value[c]));  // keep every chain
    }
  }
  return static_cast<double>(iterations) * chains * lanes * 2;
}

}  // namespace

extern const TileKernels POSATTN_ISA;
const TileKernels POSATTN_ISA = {.instruction_set = POSATTN_ISA_NAME,
                                 .lanes = lanes,
                                 .product = product,
                                 .node_products = node_products,
                                 .softmax_rows = softmax_rows,
                                 .softmax_rows_gradient = softmax_rows_gradient,
                                 .with_dots = with_dots,
                                 .relu_gradient = relu_gradient,
                                 .gelu = times_step<normal_step>,
                                 .gelu_gradient = times_step_gradient<normal_step>,
                                 .gelu_tanh = times_step<tanh_step>,
                                 .gelu_tanh_gradient = times_step_gradient<tanh_step>,
                                 .layer_norm = layer_norm,
                                 .layer_norm_gradient = layer_norm_gradient,
                                 .column_sums = column_sums,
                                 .transpose = transpose,
                                 .sum_parts = sum_parts,
                                 .adam = adam,
                                 .fourier = fourier,
                                 .inverse_fourier = inverse_fourier,
                                 .multiply_add_peak = multiply_add_peak};

}  // namespace posattn
