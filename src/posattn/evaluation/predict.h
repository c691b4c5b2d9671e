// A model's outputs for rows of numbers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "posattn/model/inference.h"
#include "posattn/model/model_file.h"

namespace posattn {

// The numbers in an output row for an input row of `columns` numbers: the task's own row, node
// after node. A fixed-length model takes rows of real_nodes x data_columns numbers only; one
// trained on several lengths takes the rows of every length up to its own. Throws Error(data),
// saying what was expected.
int64_t output_columns_for(const Model& model, int64_t columns);

// rows [count, columns] -> outputs [count, output_columns_for(columns)].
std::vector<float> predict_rows(const Model& model, std::span<const float> rows, int64_t count,
                                int threads = 1);

}  // namespace posattn
