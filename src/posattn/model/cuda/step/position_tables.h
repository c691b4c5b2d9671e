// Tables that depend on the spec alone, for engines to keep in device memory.
#pragma once

#include <cstdint>
#include <vector>

#include "posattn/model/spec/spec.h"

namespace posattn::cuda {

// P [nodes, encoding_size] where it is a formula; empty where the model has none or stores it.
std::vector<float> positions_table(const ModelSpec& spec);

// d_k of the layers with RoPE, 0 without any; and whether it is the same in all.
int32_t rotated_size(const ModelSpec& spec);
bool rotates_alike(const ModelSpec& spec);

// RoPE: cos and sin of node x 10000^(-c / d_k) for each pair of columns (c, c + 1), [nodes, d_k];
// empty without it.
std::vector<float> rotation_table(const ModelSpec& spec);

}  // namespace posattn::cuda
