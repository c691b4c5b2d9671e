// Compiled once per instruction set with POSATTN_ISA naming the table and POSATTN_LANES the vector
// length. No standard library templates here (see cmake/InstructionSets.cmake).
#include <stdint.h>

#include "posattn/kernels/cpu/activation_kernels.h"
#include "posattn/kernels/cpu/fourier_kernels.h"
#include "posattn/kernels/cpu/normalisation_kernels.h"
#include "posattn/kernels/cpu/product_kernels.h"
#include "posattn/kernels/cpu/sign_kernels.h"
#include "posattn/kernels/cpu/softmax_kernels.h"
#include "posattn/kernels/cpu/tile_kernels.h"
#include "posattn/kernels/cpu/vector.h"

namespace posattn {
namespace {

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

// Without an epsilon m / 0 is 0. With one the loop stays as it is, to the bit.
template <bool with_epsilon>
void adam_loop(const AdamNumbers<float>& n, int64_t count, const float* gradient, float* first,
               float* second, float* weights) {
  for (int64_t i = 0; i < count; ++i) {
    const float g = gradient[i] + n.decay_to_gradient * weights[i];
    const float m = n.beta1 * first[i] + n.rest1 * g;
    const float v = n.beta2 * second[i] + n.rest2 * g * g;
    first[i] = m;
    second[i] = v;
    if constexpr (with_epsilon) {
      weights[i] = n.keep * weights[i] -
                   n.step_size * (m / (__builtin_sqrtf(v) / n.root_correction2 + n.epsilon));
    } else {
      const float root = __builtin_sqrtf(v) / n.root_correction2;
      const bool moves = root != 0;  // choices keep the loop in vectors
      weights[i] = n.keep * weights[i] - n.step_size * ((moves ? m : 0.0f) / (moves ? root : 1.0f));
    }
  }
}

void adam(const AdamNumbers<float>& n, int64_t count, const float* gradient, float* first,
          float* second, float* weights) {
  const auto loop = n.epsilon > 0 ? adam_loop<true> : adam_loop<false>;
  loop(n, count, gradient, first, second, weights);
}

#ifdef __aarch64__
#define POSATTN_ANY_REGISTER "+w"
#elif !defined(__x86_64__)
#define POSATTN_ANY_REGISTER "+m"  // WebAssembly has no registers
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
                                 .exponential = exponential,
                                 .with_dots = with_dots,
                                 .relu_gradient = relu_gradient,
                                 .gelu = times_step<normal_step>,
                                 .gelu_gradient = times_step_gradient<normal_step>,
                                 .gelu_tanh = times_step<tanh_step>,
                                 .gelu_tanh_gradient = times_step_gradient<tanh_step>,
                                 .layer_norm = layer_norm,
                                 .layer_norm_gradient = layer_norm_gradient,
                                 .to_norm = to_norm,
                                 .to_norm_gradient = to_norm_gradient,
                                 .column_sums = column_sums,
                                 .transpose = transpose,
                                 .sign_products = sign_products,
                                 .sum_parts = sum_parts,
                                 .adam = adam,
                                 .fourier = fourier,
                                 .inverse_fourier = inverse_fourier,
                                 .multiply_add_peak = multiply_add_peak};

}  // namespace posattn
