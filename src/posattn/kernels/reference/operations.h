// The oracle's arithmetic: plain double loops, one formula each. Matrices are row-major and dense.
// Gradient functions add to what they are given ("+="), forward functions overwrite ("=").
#pragma once

#include <cstdint>

namespace posattn::reference {

// y [rows, out] = x [rows, in] W^T + b, with W [out, in]; b may be null.
void linear(int64_t rows, int64_t in, int64_t out, const double* x, const double* weight,
            const double* bias, double* y);
// dx += dy W;  dW += dy^T x;  db += column sums of dy. Any of dx, dweight, dbias may be null.
void linear_gradient(int64_t rows, int64_t in, int64_t out, const double* x, const double* weight,
                     const double* dy, double* dx, double* dweight, double* dbias);

// Each row of x [rows, columns] becomes exp(x) / sum exp(x).
void softmax_rows(int64_t rows, int64_t columns, double* x);
// ds = a (da - <a, da>) per row, in place of da.
void softmax_rows_gradient(int64_t rows, int64_t columns, const double* a, double* da);

void relu(int64_t count, double* x);
// dy becomes zero where the activation y was not positive.
void relu_gradient(int64_t count, const double* y, double* dy);

// C [m, n] = or += alpha op(A) op(B), any leading dimensions; op transposes when the flag is set.
void product(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, double alpha,
             const double* a, int64_t lda, const double* b, int64_t ldb, bool accumulate, double* c,
             int64_t ldc);

// Rotates the pairs (x[2i], x[2i+1]) by sign * position * 10000^(-2i/size); sign -1 undoes +1 (and
// is its gradient). The last element stays when size is odd.
void rotate(int64_t size, double position, int sign, double* x);

}  // namespace posattn::reference
