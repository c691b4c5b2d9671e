// What the table of operations does not reach: absent columns, slots that rest, untrained weights.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "posattn/kernels/cuda/elementwise_rows.h"
#include "posattn/kernels/cuda/norms.h"
#include "posattn/kernels/cuda/runtime.h"

namespace posattn::cuda {
namespace {

// Slot 0 has three real nodes of five, slot 1 rests, slot 2 has all five; two scratch nodes.
const std::vector<SlotStep> steps{{1, 3, 1}, {0, 0, 0}, {1, 5, 1}};

TEST(CudaSoftmax, LeavesOutAbsentColumnsAndSkipsRestingSlots) {
  const std::vector<float> scores(3 * 7, 2.0f);
  const DeviceBuffer<SlotStep> device_steps(steps);
  DeviceBuffer<float> x(scores);
  enqueue_softmax(3, 1, 7, {x.data(), 7, 7}, {x.data(), 7, 7}, {5}, device_steps.data(), nullptr);
  const std::vector<float> a = x.download();
  for (int c = 0; c < 7; ++c) {
    EXPECT_FLOAT_EQ(a[c], c == 3 || c == 4 ? 0.0f : 0.2f);
    EXPECT_EQ(a[7 + c], 2.0f);
    EXPECT_FLOAT_EQ(a[14 + c], 1.0f / 7);
  }
}

TEST(CudaSoftmax, IsExactlyOneHotForLargeScoresAndKeepsNaN) {
  std::vector<float> scores(40);
  scores[33] = 200;
  DeviceBuffer<float> x(scores);
  enqueue_softmax(1, 1, 40, {x.data(), 0, 40}, {x.data(), 0, 40}, {}, nullptr, nullptr);
  std::vector<float> a = x.download();
  for (int c = 0; c < 40; ++c) EXPECT_EQ(a[c], c == 33 ? 1.0f : 0.0f);
  a[17] = NAN;
  x.upload(a.data(), 40);
  enqueue_softmax(1, 1, 40, {x.data(), 0, 40}, {x.data(), 0, 40}, {}, nullptr, nullptr);
  EXPECT_TRUE(std::isnan(x.download()[0]));
}

TEST(CudaGroupSums, AddUp) {
  // Two groups of three rows of two columns, of three slots.
  std::vector<float> values;
  for (int slot = 0; slot < 3; ++slot) {
    for (int i = 1; i <= 12; ++i) values.push_back(static_cast<float>(i));
  }
  const DeviceBuffer<SlotStep> device_steps(steps);
  DeviceBuffer<float> x(values), sums(std::vector<float>(3 * 4, 100.0f));
  enqueue_group_sums(3, 2, 3, 2, {x.data(), 12, 2}, {sums.data(), 4, 2}, true, device_steps.data(),
                     nullptr);
  const std::vector<float> expected{109, 112, 127, 130};  // 1 + 3 + 5, 2 + 4 + 6, ...
  const std::vector<float> result = sums.download();
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(result[i], expected[i]);
    EXPECT_EQ(result[4 + i], 100);
    EXPECT_EQ(result[8 + i], expected[i]);
  }
}

// Rows that can be read in fours (a stride of 12) and rows that cannot give the same bits.
TEST(CudaGroupSums, AddUpManyRowsInOneOrder) {
  constexpr int groups = 2, group_rows = 330, columns = 12;
  std::vector<float> sums[2];
  for (const int stride : {12, 13}) {
    std::vector<float> values(groups * group_rows * stride);
    std::vector<double> expected(groups * columns);
    for (int r = 0; r < groups * group_rows; ++r) {
      for (int c = 0; c < columns; ++c) {
        const int i = r * stride + c;
        values[i] = static_cast<float>((r * 7 + c * 3) % 101) / 101;
        expected[r / group_rows * columns + c] += values[i];
      }
    }
    const DeviceBuffer<float> x(values);
    DeviceBuffer<float> result(groups * columns);
    enqueue_group_sums(1, groups, group_rows, columns, {x.data(), 0, stride},
                       {result.data(), 0, columns}, false, nullptr, nullptr);
    sums[stride - 12] = result.download();
    for (int i = 0; i < groups * columns; ++i) {
      EXPECT_NEAR(sums[stride - 12][i], expected[i], 1e-4);
    }
  }
  EXPECT_EQ(sums[0], sums[1]);
}

// Four nodes of which the last two may be absent, and two samples, one of zeros.
TEST(CudaParts, AreMultipliedBackByTheirSize) {
  constexpr int nodes = 4, samples = 2, columns = 3, count = nodes * samples * columns;
  const std::vector<SlotStep> lengths{{1, 2, 1}, {0, 0, 0}, {1, 4, 1}};
  std::vector<float> values(3 * count, 7.0f), ones(3 * nodes * samples, 1.0f);
  for (int i = 0; i < 3 * count; ++i) {
    if (i / columns % samples == 1) values[i] = i % count / (samples * columns) < 2 ? 0.0f : 5.0f;
  }
  const DeviceBuffer<SlotStep> device_steps(lengths);
  DeviceBuffer<float> x(values), y(ones), inverse(3 * samples);
  const PartShape shape{3, nodes, samples, columns, nodes, true};
  const Rows<float> inverses{inverse.data(), samples, 1};
  enqueue_scale_parts(shape, {x.data(), count, columns}, {x.data(), count, columns}, inverses,
                      device_steps.data(), nullptr);
  enqueue_multiply_back(shape, inverses, 1, {y.data(), nodes * samples, 1}, device_steps.data(),
                        nullptr);
  const std::vector<float> sizes = y.download();
  for (int i = 0; i < 3 * nodes * samples; ++i) {
    const int slot = i / (nodes * samples);
    const float of_second = slot == 0 ? 0.0f : std::sqrt(12.5f);  // two nodes of 0, two of 5
    EXPECT_FLOAT_EQ(sizes[i], slot == 1 ? 1 : i % samples == 0 ? 7 : of_second) << i;
  }
}

}  // namespace
}  // namespace posattn::cuda
