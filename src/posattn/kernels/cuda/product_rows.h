// Products of many rows with a small matrix: linear maps of activations, and their gradients by
// their input. For .cu files.
//
// B lies in shared memory as the tensor core wants it, split beforehand, and a block takes many
// rows through it. A goes from global memory into registers without a detour: every element of it
// is wanted by one lane of one warp. So A is read once, C written once, and nothing waits.
#pragma once

#include "posattn/kernels/cuda/product_plan.cuh"

namespace posattn::cuda {

bool row_product_fits(const Product& product, Precision precision);
void launch_row_product(const ProductPlan& plan, Precision precision, cudaStream_t stream);

}  // namespace posattn::cuda
