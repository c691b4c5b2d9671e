// The arithmetic of a tile: a few samples' activations, small enough for the second-level cache.
//
// Why not a library: the products here are small (144 x 192 x 64), many, and followed at once by a
// bias and a ReLU. OpenBLAS is fast on some of these shapes and falls to half speed on others (its
// small-matrix kernel stops at M N K = 1e6), and cannot fuse the epilogue. One kernel with a
// strided left operand covers linear maps, their gradients and the mixing over nodes. Large
// products (blas.h) stay with OpenBLAS.
//
// The functions are compiled once per instruction set (isa_kernels.cc) and chosen at start-up.
// Matrices are row-major with a leading dimension ("stride"); nothing needs alignment.
#pragma once

#include <cstdint>
#include <string_view>

namespace posattn {

// How a product's result is stored; `times` multiplies it, element by element, with a matrix.
enum class Store { assign, add, bias, bias_relu, times };

// The numbers of one step of Adam or AdamW (training/optimiser.cc has the formulas).
template <class T>
struct AdamNumbers {
  T decay_to_gradient, keep;  // Adam's weight decay; AdamW's 1 - lr * decay
  T beta1, rest1, beta2, rest2, root_correction2, epsilon, step_size;
};

struct TileKernels {
  const char* instruction_set;
  int lanes;  // floats of a vector

  // C [m, n] = A B,  C += A B,  C = A B + bias,  C = max(0, A B + bias)  or  C = M (A B) element by
  // element, with B [k, n] and M in the place of the bias, its rows as far apart as C's.
  // A(i, p) = a[i * row_stride + p * inner_stride]: (lda, 1) is A, (1, lda) its transpose.
  void (*product)(int64_t m, int64_t n, int64_t k, const float* a, int64_t row_stride,
                  int64_t inner_stride, const float* b, int64_t ldb, float* c, int64_t ldc,
                  Store store, const float* bias);

  // p [nodes, nodes] += sum over samples of x_s y_s^T, x_s and y_s [nodes, width], samples one
  // below the other: the gradient of an attention matrix shared by all samples.
  void (*node_products)(int64_t samples, int64_t nodes, int64_t width, const float* x, int64_t ldx,
                        const float* y, int64_t ldy, float* p, int64_t ldp);

  // Softmax of each row; columns from `columns` to `ld` become zero.
  void (*softmax_rows)(int64_t rows, int64_t columns, int64_t ld, float* x);
  // da becomes a (da - <a, da>) per row; columns from `columns` to `ld` may be overwritten.
  void (*softmax_rows_gradient)(int64_t rows, int64_t columns, int64_t ld, const float* a,
                                float* da);

  // y = exp(x) to about a unit in the last place, infinity above 88; y may be x.
  void (*exponential)(int64_t count, const float* x, float* y);

  // out = [dy | -<dy, y>] per row. With it the gradient of scores is one product: for y = a v,
  // a (da - <a, da>) = a (dy v^T - <dy, y>).
  void (*with_dots)(int64_t rows, int64_t columns, const float* dy, int64_t lddy, const float* y,
                    int64_t ldy, float* out, int64_t ldo);

  // dy becomes zero where y <= 0; dbias += column sums of the result.
  void (*relu_gradient)(int64_t rows, int64_t columns, const float* y, int64_t ldy, float* dy,
                        int64_t lddy, float* dbias);
  // y = activation of x; dx = dy times its derivative at x, and y once more (generic/activation.h).
  // y may be x, dx may be dy.
  void (*gelu)(int64_t count, const float* x, float* y);
  void (*gelu_gradient)(int64_t count, const float* x, const float* dy, float* dx, float* y);
  void (*gelu_tanh)(int64_t count, const float* x, float* y);
  void (*gelu_tanh_gradient)(int64_t count, const float* x, const float* dy, float* dx, float* y);

  // LayerNorm of each row, and its gradient: dx =, dgain +=, dshift += (generic/normalisation.h).
  void (*layer_norm)(int64_t rows, int64_t columns, const float* x, const float* gain,
                     const float* shift, float* y);
  void (*layer_norm_gradient)(int64_t rows, int64_t columns, const float* x, const float* gain,
                              const float* dy, float* dx, float* dgain, float* dshift);

  // Vectors of `size` numbers, `stride` apart, get the length `norm`, and 1 / |x| is kept; and the
  // gradient of that, which returns the sum of <dy, y> (generic/rows.h).
  void (*to_norm)(int64_t vectors, int64_t size, int64_t stride, float norm, float* x,
                  float* inverse, int64_t inverse_stride);
  float (*to_norm_gradient)(int64_t vectors, int64_t size, int64_t stride, float norm,
                            const float* inverse, int64_t inverse_stride, const float* y,
                            float* dy);

  // sums += column sums of x.
  void (*column_sums)(int64_t rows, int64_t columns, const float* x, int64_t ldx, float* sums);
  // y [columns, rows] = transpose of x [rows, columns].
  void (*transpose)(int64_t rows, int64_t columns, const float* x, int64_t ldx, float* y,
                    int64_t ldy);

  // out [rows, columns] = sign(x) sign(y)^T of x [rows, size] and y [columns, size], sign(0) = 0,
  // by counting bits in words of 64 signs: of numbers that neither sign is 0 of, those where they
  // agree minus those where they differ. packed holds 2 (rows + columns) ceil(size / 64) words.
  void (*sign_products)(int64_t rows, int64_t columns, int64_t size, const float* x, const float* y,
                        uint64_t* packed, float* out);

  // sum = part_0 + part_1 + ... in order, parts `stride` apart.
  void (*sum_parts)(int64_t count, int parts, int64_t stride, const float* x, float* sum);

  // One optimiser step on `count` weights.
  void (*adam)(const AdamNumbers<float>& numbers, int64_t count, const float* gradient,
               float* first, float* second, float* weights);

  // Transforms of x [size, 2, 4], size a power of two: into an order of its own, and back times
  // size. `turns` as Fourier makes them (fourier.h).
  void (*fourier)(int64_t size, const double* turns, double* x);
  void (*inverse_fourier)(int64_t size, const double* turns, double* x);

  // Nothing but fused multiply-adds, for the benchmark's peak: returns the flops done.
  double (*multiply_add_peak)(int64_t iterations);
};

// The best set this processor runs; POSATTN_ISA=x86-64-v2|x86-64-v3|x86-64-v4 asks for a lower one.
const TileKernels& tile_kernels();
std::string_view instruction_set();

// Every set this processor runs, for tests. `count` receives how many.
const TileKernels* const* available_tile_kernels(int& count);

}  // namespace posattn
