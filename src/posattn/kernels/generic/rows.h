// Operations on the rows of matrices, written once for float (the block executor on the CPU) and
// double (the reference): what is neither a product nor hot in the paper's models. Matrices are
// row-major without gaps. The table of operations checks each against finite differences, PyTorch
// (tests/parity) and CUDA.
#pragma once

#include <cstdint>
#include <span>

#include "posattn/kernels/cpu/tile_kernels.h"

namespace posattn::generic {

// y [rows, columns]: row r = or += row token[r] of the table; rows of negative tokens stay.
template <class T>
void embed(int64_t rows, int64_t columns, const int32_t* tokens, const T* table, bool accumulate,
           T* y);
template <class T>
void embed_gradient(int64_t rows, int64_t columns, const int32_t* tokens, const T* dy, T* dtable);

// scores [nodes, nodes]: later nodes, which node i must not attend to, get no weight in a
// softmax.
template <class T>
void mask_causal(int64_t nodes, T* scores);

// Rotates the pairs (2i, 2i + 1) of every vector of `size` elements, `vectors` of them in a row, by
// sign x position x 10000^(-2i / size); rows repeat the positions. sign -1 undoes +1, and is its
// gradient. The last element stays when size is odd.
template <class T>
void rotate(int64_t rows, int64_t vectors, int64_t size, std::span<const int> positions, int sign,
            T* x);

// y = norm x / |x| in place, and 0 where x = 0; returns 1 / |x|, or 0. There is no epsilon: y is
// the same for x and c x, c > 0. The gradient takes y and dy, which becomes dx = norm / |x| (dy - y
// <dy, y> / norm^2), and returns <dy, y>.
template <class T>
T to_norm(int64_t size, T norm, T* x);
template <class T>
T to_norm_gradient(int64_t size, T norm, T inverse, const T* y, T* dy);

// In place, for rows of `heads` queries and keys by turns, of `size` numbers each: q' = e^t q / |q|
// with t = log_scale of the head (null: 0), k' = k / |k|. kept [rows, heads, 2]: 1 / |q| and
// 1 / |k|. The gradient: d becomes that of q and k; dq = (e^t / |q|) (dq' - q' <dq', q'> / e^2t),
// dk as dq without t, dlog_scale += <dq', q'>.
template <class T>
void unit_keys(int64_t rows, int heads, int64_t size, const T* log_scale, T* query_key, T* kept);
template <class T>
void unit_keys_gradient(int64_t rows, int heads, int64_t size, const T* log_scale,
                        const T* query_key, const T* kept, T* d, T* dlog_scale);

// In place, as above: q' = e^t sign(q), k' = sign(k), sign(0) = 0. A sign has no derivative. Its
// surrogate is that of (2 / pi) arctan(pi x / r), r the root mean square of the vector's numbers:
//   g(x) = 2 / (r (1 + (pi x / r)^2)), and 0 where r = 0
// as if r did not depend on x. Like the true derivative of what has degree 0, g has degree -1.
// kept [rows, heads, 2 size] is g; dq = e^t g(q) dq', dk = g(k) dk', dlog_scale += <dq', q'>.
template <class T>
void sign_keys(int64_t rows, int heads, int64_t size, const T* log_scale, T* query_key, T* kept);
template <class T>
void sign_keys_gradient(int64_t rows, int heads, int64_t size, const T* log_scale,
                        const T* query_key, const T* kept, T* d, T* dlog_scale);

// loss += (unit y - target)^2 for elements with mask != 0 (null: all); dy = 2 scale unit (unit y -
// target), else 0.
template <class T>
void squared_error(int64_t count, T scale, T unit, const T* y, const T* target, const uint8_t* mask,
                   T* dy, double& loss);
// loss += -log softmax(y)[label] for rows with label >= 0; dy = scale (softmax(y) - [label]), else
// 0.
template <class T>
void cross_entropy(int64_t rows, int64_t classes, T scale, const T* y, const int32_t* labels, T* dy,
                   double& loss, const TileKernels& kernels = tile_kernels());

}  // namespace posattn::generic
