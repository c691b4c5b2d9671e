// Gradients of large tables of tokens, against a plain loop. Small ones are rows of the table of
// operations.
#include <gtest/gtest.h>

#include <vector>

#include "posattn/base/random.h"
#include "posattn/kernels/cuda/product.h"
#include "posattn/kernels/cuda/runtime.h"
#include "posattn/kernels/cuda/tokens.h"

namespace posattn::cuda {
namespace {

void check_large_table(int slots, int rows, int columns, bool accumulate) {
  constexpr int vocabulary = 300;
  RandomStream random(3, Purpose::test_data, 0, rows);
  std::vector<int32_t> tokens(slots * rows);
  for (int32_t& token : tokens) token = static_cast<int32_t>(random.below(40)) * 7 - 1;
  std::vector<float> dy(slots * rows * columns), table(slots * vocabulary * columns, 0.5f);
  for (float& value : dy) value = random.uniform(-1.0f, 1.0f);
  std::vector<double> expected(table.size(), accumulate ? 0.5 : 0.0);
  for (int row = 0; row < slots * rows; ++row) {
    if (tokens[row] < 0) continue;
    const int64_t to = (int64_t{1} * (row / rows) * vocabulary + tokens[row]) * columns;
    for (int c = 0; c < columns; ++c) expected[to + c] += dy[int64_t{1} * row * columns + c];
  }
  const DeviceBuffer<int32_t> device_tokens(tokens);
  const DeviceBuffer<float> device_dy(dy);
  DeviceBuffer<float> dtable(table), workspace(slots * product_workspace);
  enqueue_embed_gradient(slots, rows, columns, vocabulary, device_tokens.data(),
                         {device_dy.data(), rows * columns, columns},
                         {dtable.data(), vocabulary * columns, columns}, accumulate, nullptr,
                         workspace.data(), nullptr);
  const std::vector<float> result = dtable.download();
  for (size_t i = 0; i < result.size(); ++i) ASSERT_NEAR(result[i], expected[i], 2e-5) << i;
}

TEST(TokensOnDevice, SumTheRowsOfEachTokenOfALargeTable) {
  check_large_table(2, 40, 270, false);
  check_large_table(1, 290, 20, true);  // more rows than a block looks at at once
  check_large_table(1, 310, 4, false);  // more rows than tokens
}

}  // namespace
}  // namespace posattn::cuda
