// Deep products of few elements: the gradients of weights, sums over all rows of outer products.
// For .cu files.
//
// A block takes a run of the depth through all of C, or a large tile of it, so that operands are
// read once. Both lie in shared memory as they do in global memory, and a lane reads four
// neighbours at a time: which rows and columns of C a fragment holds is for us to say.
#pragma once

#include "posattn/kernels/cuda/product_plan.cuh"

namespace posattn::cuda {

bool deep_product_fits(const Product& product);

// The depth of a part: each is summed from zero, and parts are added in order by the caller. Part i
// goes to workspace [rows, columns], then [rows] sums of A's rows, part_floats() apart.
int32_t deep_part_depth(const Product& product);
int64_t deep_part_floats(const Product& product);
void launch_deep_product(const ProductPlan& plan, Precision precision, float* workspace,
                         cudaStream_t stream);

}  // namespace posattn::cuda
