// The CUDA side of the table of operations (kernels/operations.h) has each row's kernels, which
// take host operands and give host results. No CUDA types.
#pragma once

#include <string>
#include <vector>

#include "posattn/kernels/cuda/fleet.h"
#include "posattn/kernels/operations.h"

namespace posattn::cuda {

struct CudaOperation {
  std::string name;  // the row of operations() it belongs to
  void (*forward)(Precision precision, const Sizes& sizes, const Operands<float>& inputs,
                  Buffer<float>& output);
  // Null where the CPU has none either.
  void (*gradient)(Precision precision, const Sizes& sizes, const Operands<float>& inputs,
                   const Buffer<float>& output, const Buffer<float>& doutput,
                   Operands<float>& dinputs);
};

const std::vector<CudaOperation>& cuda_operations();
// The rows whose code on the CPU is kernels/generic.
std::vector<CudaOperation> plain_cuda_operations();

}  // namespace posattn::cuda
