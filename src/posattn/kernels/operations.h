// One table of operations: for each its plain double reference, its fp32 kernels, and the sizes to
// test and to time it at. The tests run every row against the reference and its gradient against
// finite differences on every instruction set this processor has; `posattn bench --operations`
// times the same rows. Adding an operation, or a backend, is adding to this table.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "posattn/base/random.h"
#include "posattn/kernels/cpu/tile_kernels.h"
#include "posattn/tensor/buffer.h"

namespace posattn {

using Sizes = std::vector<int64_t>;
template <class T>
using Operands = std::vector<Buffer<T>>;

struct Operation {
  std::string name, formula;
  std::vector<std::string> size_names;
  Sizes (*random_sizes)(RandomStream& random);
  Sizes paper_sizes;  // a tile of the paper's models, for timing
  std::vector<int64_t> (*input_counts)(const Sizes& sizes);
  int64_t (*output_count)(const Sizes& sizes);
  double (*multiply_adds)(const Sizes& sizes);  // of the forward pass

  void (*reference)(const Sizes& sizes, const Operands<double>& inputs, Buffer<double>& output);
  // dinputs = gradients of <doutput, output>; null for operations that are not differentiated.
  void (*reference_gradient)(const Sizes& sizes, const Operands<double>& inputs,
                             const Buffer<double>& output, const Buffer<double>& doutput,
                             Operands<double>& dinputs);
  void (*cpu)(const TileKernels& kernels, const Sizes& sizes, const Operands<float>& inputs,
              Buffer<float>& output);
  void (*cpu_gradient)(const TileKernels& kernels, const Sizes& sizes,
                       const Operands<float>& inputs, const Buffer<float>& output,
                       const Buffer<float>& doutput, Operands<float>& dinputs);
};

const std::vector<Operation>& operations();

// A whole number from -1 to count - 1 out of an operand in [-2, 2): how rows that read tokens or
// labels are tested and timed.
inline int32_t class_of(double operand, int64_t count) {
  return static_cast<int32_t>((operand + 2) / 4 * static_cast<double>(count + 1)) - 1;
}

}  // namespace posattn
