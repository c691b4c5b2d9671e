// The batched product against plain loops in double: random sizes, strides, batches and epilogues.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "posattn/base/random.h"
#include "posattn/kernels/cuda/product.h"
#include "posattn/kernels/cuda/runtime.h"

namespace posattn::cuda {
namespace {

int32_t between(RandomStream& random, int low, int high) {
  return low + static_cast<int32_t>(random.below(static_cast<uint32_t>(high - low + 1)));
}

// Strides of a matrix [rows, columns] per (slot, outer, inner), all apart; contiguous along rows or
// columns or (seldom) neither, at times with groups and lengths that allow copies of 16 bytes.
template <class T>
Matrix<T> random_strides(const Product& p, int32_t rows, int32_t columns, RandomStream& random,
                         int64_t& size) {
  Matrix<T> matrix;
  const bool transposed = random.below(2) != 0, fours = random.below(2) != 0;
  int32_t& inner_extent = transposed ? rows : columns;
  Axis& contiguous = transposed ? matrix.row : matrix.column;
  Axis& other = transposed ? matrix.column : matrix.row;
  contiguous.stride = random.below(6) == 0 ? 2 : 1;
  other.stride = contiguous.stride * inner_extent + between(random, 0, 3);
  if (fours) other.stride = (other.stride + 3) / 4 * 4;
  int64_t total = other.stride * (transposed ? columns : rows);
  if (random.below(3) == 0) {  // (group, member) with the groups outermost
    contiguous.group = fours ? 4 * between(random, 1, 4) : between(random, 1, 9);
    contiguous.group_stride = total;
    total *= ceil_div(inner_extent, contiguous.group);
  }
  matrix.inner = total;
  matrix.outer = matrix.inner * p.inner;
  matrix.slot = matrix.outer * p.outer;
  size = matrix.slot * p.slots;
  return matrix;
}

struct Case {
  Product product;
  std::vector<float> a, b, c, bias;
  std::vector<SlotStep> steps;

  Case(RandomStream& random, int32_t slots) {
    Product& p = product;
    const bool deep = random.below(3) == 0;
    p.rows = between(random, 1, random.below(2) == 0 ? (deep ? 50 : 100) : 20);
    p.columns = between(random, 1, random.below(2) == 0 ? (deep ? 50 : 100) : 20);
    p.depth = deep ? between(random, 1000, 1700) : between(random, 1, 70);
    p.slots = slots;
    p.outer = between(random, 1, 2);
    p.inner = between(random, 1, 3);
    p.alpha = random.uniform(-2, 2);
    p.accumulate = random.below(2) != 0;
    p.relu = random.below(3) == 0;
    int64_t sizes[3];
    p.a = random_strides<const float>(p, p.rows, p.depth, random, sizes[0]);
    p.b = random_strides<const float>(p, p.depth, p.columns, random, sizes[1]);
    p.c = random_strides<float>(p, p.rows, p.columns, random, sizes[2]);
    if (random.below(2) != 0) {
      p.bias_rows = random.below(2) != 0 ? between(random, 1, p.rows) : 0;
      p.bias_stride = p.columns;
      p.bias_slot = p.rows * p.columns;
      bias.resize(p.slots * p.bias_slot);
    }
    a.resize(sizes[0]);
    b.resize(sizes[1]);
    c.resize(sizes[2]);
    for (auto* values : {&a, &b, &c, &bias}) {
      for (float& x : *values) x = random.uniform(-1, 1);
    }
    steps.assign(slots, {1, 1, 1});
  }

  std::vector<float> run(Precision precision) const {
    const DeviceBuffer<float> device_a(a), device_b(b), device_bias(bias);
    DeviceBuffer<float> device_c(c), workspace(product.slots * product_workspace);
    const DeviceBuffer<SlotStep> device_steps(steps);
    Product p = product;
    p.a.data = device_a.data();
    p.b.data = device_b.data();
    p.c.data = device_c.data();
    p.bias = bias.empty() ? nullptr : device_bias.data();
    enqueue_product(p, precision, device_steps.data(), workspace.data(), nullptr);
    return device_c.download();
  }

  // What C should be; what does not belong to a matrix stays as it was.
  std::vector<double> expected() const {
    const Product& p = product;
    std::vector<double> result(c.begin(), c.end());
    for (int64_t batch = 0; batch < int64_t{1} * p.slots * p.outer * p.inner; ++batch) {
      const int64_t slot = batch / (p.outer * p.inner), outer = batch / p.inner % p.outer,
                    inner = batch % p.inner;
      if (steps[slot].samples == 0) continue;
      const auto place = [&](const auto& m, int row, int column) {
        return slot * m.slot + outer * m.outer + inner * m.inner + m.row.offset(row) +
               m.column.offset(column);
      };
      for (int i = 0; i < p.rows; ++i) {
        for (int j = 0; j < p.columns; ++j) {
          double sum = 0;
          for (int k = 0; k < p.depth; ++k) {
            sum += static_cast<double>(a[place(p.a, i, k)]) * b[place(p.b, k, j)];
          }
          sum *= p.alpha;
          double& to = result[place(p.c, i, j)];
          if (p.accumulate) sum += to;
          const int64_t bias_row = p.bias_rows == 0 ? 0 : i / p.bias_rows;
          if (!bias.empty()) sum += bias[slot * p.bias_slot + bias_row * p.bias_stride + j];
          to = p.relu && sum < 0 ? 0 : sum;
        }
      }
    }
    return result;
  }
};

class ProductOnRandomSizes : public ::testing::TestWithParam<int> {};

TEST_P(ProductOnRandomSizes, AgreesWithPlainLoops) {
  RandomStream random(11, Purpose::test_data, 0, GetParam());
  Case c(random, 3);
  c.steps[1].samples = 0;
  const std::vector<double> expected = c.expected();
  for (const Precision precision : {Precision::fp32, Precision::tf32}) {
    const std::vector<float> result = c.run(precision);
    const double tolerance = (precision == Precision::fp32 ? 3e-6 : 2e-3) *
                             std::sqrt(static_cast<double>(c.product.depth) + 10);
    for (size_t i = 0; i < result.size(); ++i) {
      ASSERT_NEAR(result[i], expected[i], tolerance) << "place " << i;
    }
  }
}

// A slot alone gives the same bits as in a fleet of three.
TEST_P(ProductOnRandomSizes, DoesNotDependOnTheFleet) {
  RandomStream random(12, Purpose::test_data, 0, GetParam());
  Case fleet(random, 3);
  const std::vector<float> all = fleet.run(Precision::fp32);
  Case alone = fleet;
  alone.product.slots = 1;
  const auto third = [](std::vector<float>& values, int64_t stride) {
    if (!values.empty()) values.erase(values.begin(), values.begin() + 2 * stride);
  };
  third(alone.a, alone.product.a.slot);
  third(alone.b, alone.product.b.slot);
  third(alone.c, alone.product.c.slot);
  third(alone.bias, alone.product.bias_slot);
  const std::vector<float> one = alone.run(Precision::fp32);
  EXPECT_TRUE(std::equal(one.begin(), one.end(), all.begin() + 2 * alone.product.c.slot));
}

INSTANTIATE_TEST_SUITE_P(Seeds, ProductOnRandomSizes, ::testing::Range(0, 12));

}  // namespace
}  // namespace posattn::cuda
