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

// How a matrix lies in memory.
struct Layout {
  bool transposed = false;  // contiguous along the rows
  int32_t stride = 1;       // of what is contiguous
  int32_t pad = 0;          // between lines
  bool fours = true;        // lines are a multiple of four apart
  int32_t group = 0;        // of what is contiguous, the groups outermost
  int32_t line_group = 0;   // of lines
};

// Strides of a matrix [rows, columns] per (slot, outer, inner), all apart.
template <class T>
Matrix<T> strides(const Product& p, int32_t rows, int32_t columns, const Layout& layout,
                  int64_t& size) {
  Matrix<T> matrix;
  Axis& contiguous = layout.transposed ? matrix.row : matrix.column;
  Axis& line = layout.transposed ? matrix.column : matrix.row;
  const int32_t extent = layout.transposed ? rows : columns;
  const int32_t lines = layout.transposed ? columns : rows;
  contiguous.stride = layout.stride;
  const int32_t in_line = layout.group == 0 ? extent : std::min(extent, layout.group);
  line.stride = int64_t{layout.stride} * in_line + layout.pad;
  if (layout.fours) line.stride = (line.stride + 3) / 4 * 4;
  int64_t total = line.stride * lines;
  if (layout.line_group != 0) {
    line.group = layout.line_group;
    line.group_stride = line.stride * line.group + 8;
    total = line.group_stride * ceil_div(lines, line.group);
  }
  if (layout.group != 0) {
    contiguous.group = layout.group;
    contiguous.group_stride = total;
    total *= ceil_div(extent, contiguous.group);
  }
  matrix.inner = total;
  matrix.outer = matrix.inner * p.inner;
  matrix.slot = matrix.outer * p.outer;
  size = matrix.slot * p.slots;
  return matrix;
}

// Half of these allow copies of 16 bytes.
Layout random_layout(RandomStream& random) {
  Layout layout;
  layout.fours = random.below(2) != 0;
  const auto group = [&] {
    if (random.below(3) != 0) return 0;
    return layout.fours ? 4 << between(random, 0, 4) : between(random, 1, 9);
  };
  layout.transposed = random.below(2) != 0;
  if (random.below(6) == 0) layout.stride = 2;
  layout.pad = between(random, 0, 3);
  layout.group = group();
  layout.line_group = group();
  return layout;
}

struct Case {
  Product product;
  std::vector<float> a, b, c, bias;
  std::vector<float> added, slope_at;  // [slots, rows, columns], where the product has them
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
    if (random.below(3) == 0) p.curve = Curve::relu;
    set_layouts(random_layout(random), random_layout(random), random_layout(random));
    if (random.below(2) != 0) {
      p.bias_rows = random.below(2) != 0 ? between(random, 1, p.rows) : 0;
      p.bias_stride = p.columns;
      p.bias_slot = p.rows * p.columns;
      bias.resize(p.slots * p.bias_slot);
    }
    if (random.below(2) != 0) set_neighbours(random);
    fill(random);
  }

  // Matrices of the epilogue, a curve and sums of rows.
  void set_neighbours(RandomStream& random) {
    Product& p = product;
    p.outer = p.inner = 1;
    const int64_t size = int64_t{1} * p.slots * p.rows * p.columns;
    if (random.below(2) != 0) added.resize(size);
    if (random.below(2) != 0) slope_at.resize(size);
    p.curve = static_cast<Curve>(random.below(4));
    sums_rows = random.below(2) != 0;
    keeps_before = random.below(2) != 0;
  }
  bool sums_rows = false, keeps_before = false;

  // A plain product of one matrix.
  Case(int32_t rows, int32_t columns, int32_t depth, const Layout& layout_a,
       const Layout& layout_b) {
    RandomStream random(13, Purpose::test_data, 0, rows + columns + depth);
    product.rows = rows;
    product.columns = columns;
    product.depth = depth;
    set_layouts(layout_a, layout_b, {});
    fill(random);
  }

  void set_layouts(const Layout& layout_a, const Layout& layout_b, const Layout& layout_c) {
    Product& p = product;
    int64_t sizes[3];
    p.a = strides<const float>(p, p.rows, p.depth, layout_a, sizes[0]);
    p.b = strides<const float>(p, p.depth, p.columns, layout_b, sizes[1]);
    p.c = strides<float>(p, p.rows, p.columns, layout_c, sizes[2]);
    a.resize(sizes[0]);
    b.resize(sizes[1]);
    c.resize(sizes[2]);
  }
  void fill(RandomStream& random) {
    for (auto* values : {&a, &b, &c, &bias, &added, &slope_at}) {
      for (float& x : *values) x = random.uniform(-1, 1);
    }
    steps.assign(product.slots, {1, 1, 1});
  }

  struct Result {
    std::vector<float> c, before, row_sums;
  };

  Result run(Precision precision) const {
    const DeviceBuffer<float> device_a(a), device_b(b), device_bias(bias), device_added(added),
        device_slope_at(slope_at);
    DeviceBuffer<float> device_c(c), workspace(product.slots * product_workspace);
    DeviceBuffer<float> before(std::vector<float>(keeps_before ? size() : 0));
    DeviceBuffer<float> row_sums(std::vector<float>(sums_rows ? product.slots * product.rows : 0));
    const DeviceBuffer<SlotStep> device_steps(steps);
    Product p = product;
    const int64_t slot = int64_t{1} * p.rows * p.columns;
    p.a.data = device_a.data();
    p.b.data = device_b.data();
    p.c.data = device_c.data();
    p.bias = bias.empty() ? nullptr : device_bias.data();
    p.added = {added.empty() ? nullptr : device_added.data(), slot, p.columns};
    p.slope_at = {slope_at.empty() ? nullptr : device_slope_at.data(), slot, p.columns};
    p.before = {keeps_before ? before.data() : nullptr, slot, p.columns};
    p.row_sums = sums_rows ? row_sums.data() : nullptr;
    p.row_sums_slot = p.rows;
    enqueue_product(p, precision, device_steps.data(), workspace.data(), nullptr);
    return {device_c.download(), before.download(), row_sums.download()};
  }
  int64_t size() const { return int64_t{1} * product.slots * product.rows * product.columns; }

  struct Expected {
    std::vector<double> c, before, row_sums;
  };

  // What C should be; what does not belong to a matrix stays as it was.
  Expected expected() const {
    const Product& p = product;
    Expected result{{c.begin(), c.end()},
                    std::vector<double>(keeps_before ? size() : 0),
                    std::vector<double>(sums_rows ? p.slots * p.rows : 0)};
    for (int64_t batch = 0; batch < int64_t{1} * p.slots * p.outer * p.inner; ++batch) {
      const int64_t slot = batch / (p.outer * p.inner), outer = batch / p.inner % p.outer,
                    inner = batch % p.inner;
      if (steps[slot].samples == 0) continue;
      const auto place = [&](const auto& m, int row, int column) {
        return slot * m.slot + outer * m.outer + inner * m.inner + m.row.offset(row) +
               m.column.offset(column);
      };
      for (int i = 0; i < p.rows; ++i) {
        for (int k = 0; k < p.depth && sums_rows; ++k) {
          result.row_sums[slot * p.rows + i] += a[place(p.a, i, k)];
        }
        for (int j = 0; j < p.columns; ++j) {
          double sum = 0;
          for (int k = 0; k < p.depth; ++k) {
            sum += static_cast<double>(a[place(p.a, i, k)]) * b[place(p.b, k, j)];
          }
          sum *= p.alpha;
          double& to = result.c[place(p.c, i, j)];
          if (p.accumulate) sum += to;
          const int64_t bias_row = p.bias_rows == 0 ? 0 : i / p.bias_rows;
          if (!bias.empty()) {
            sum += bias[slot * p.bias_slot + bias_row * p.bias_stride + p.bias_column.offset(j)];
          }
          const int64_t element = (slot * p.rows + i) * p.columns + j;
          if (!added.empty()) sum += added[element];
          if (keeps_before) result.before[element] = sum;
          to = slope_at.empty() ? value(sum) : sum * slope(slope_at[element]);
        }
      }
    }
    return result;
  }

  double bend(double x) const { return std::tanh(std::sqrt(2 / pi) * (x + 0.044715 * x * x * x)); }
  double value(double x) const {
    switch (product.curve) {
      case Curve::none:
        return x;
      case Curve::relu:
        return std::max(x, 0.0);
      case Curve::gelu:
        return 0.5 * x * (1 + std::erf(x / std::sqrt(2)));
      case Curve::gelu_tanh:
        return 0.5 * x * (1 + bend(x));
    }
    return x;
  }
  double slope(double x) const {
    constexpr double step = 1e-6;
    return (value(x + step) - value(x - step)) / (2 * step);
  }
  static constexpr double pi = 3.14159265358979323846;
};

void expect_near(const std::vector<float>& ours, const std::vector<double>& expected,
                 double tolerance) {
  ASSERT_EQ(ours.size(), expected.size());
  for (size_t i = 0; i < ours.size(); ++i) {
    ASSERT_NEAR(ours[i], expected[i], tolerance) << "place " << i;
  }
}

void check_product(const Case& c, Precision precision) {
  const Case::Expected expected = c.expected();
  const Case::Result result = c.run(precision);
  const double tolerance = (precision == Precision::fp32 ? 3e-6 : 2e-3) *
                           std::sqrt(static_cast<double>(c.product.depth) + 10);
  expect_near(result.c, expected.c, tolerance);
  expect_near(result.before, expected.before, tolerance);
  expect_near(result.row_sums, expected.row_sums, tolerance);
}

class ProductOnRandomSizes : public ::testing::TestWithParam<int> {};

TEST_P(ProductOnRandomSizes, AgreesWithPlainLoops) {
  RandomStream random(11, Purpose::test_data, 0, GetParam());
  Case c(random, 3);
  c.steps[1].samples = 0;
  for (const Precision precision : {Precision::fp32, Precision::tf32}) check_product(c, precision);
}

// A slot alone gives the same bits as in a fleet of three.
TEST_P(ProductOnRandomSizes, DoesNotDependOnTheFleet) {
  RandomStream random(12, Purpose::test_data, 0, GetParam());
  Case fleet(random, 3);
  const Case::Result all = fleet.run(Precision::fp32);
  Case alone = fleet;
  alone.product.slots = 1;
  const auto third = [](std::vector<float>& values, int64_t stride) {
    if (!values.empty()) values.erase(values.begin(), values.begin() + 2 * stride);
  };
  third(alone.a, alone.product.a.slot);
  third(alone.b, alone.product.b.slot);
  third(alone.c, alone.product.c.slot);
  third(alone.bias, alone.product.bias_slot);
  const int64_t size = int64_t{1} * alone.product.rows * alone.product.columns;
  third(alone.added, size);
  third(alone.slope_at, size);
  const Case::Result one = alone.run(Precision::fp32);
  EXPECT_TRUE(std::equal(one.c.begin(), one.c.end(), all.c.begin() + 2 * alone.product.c.slot));
  EXPECT_TRUE(std::equal(one.row_sums.begin(), one.row_sums.end(),
                         all.row_sums.end() - static_cast<int64_t>(one.row_sums.size())));
}

INSTANTIATE_TEST_SUITE_P(Seeds, ProductOnRandomSizes, ::testing::Range(0, 24));

// Linear maps of many rows and gradients of weights, whose bias goes with them.
TEST(Product, OfManyRowsOrMuchDepthAgreesWithPlainLoops) {
  // Rows, columns, depth; a depth of several chunks, columns of several blocks, of a part of one.
  const int32_t sizes[][3] = {{530, 60, 60},  {513, 184, 20},  {600, 16, 132},  {520, 244, 64},
                              {60, 60, 1100}, {184, 60, 1030}, {36, 244, 1025}, {260, 132, 1040}};
  for (const auto& [rows, columns, depth] : sizes) {
    for (int seed = 0; seed < 2; ++seed) {
      RandomStream random(14, Purpose::test_data, seed, rows);
      const bool deep = depth > 1000;
      Case c(rows, columns, depth, {.transposed = deep}, {.transposed = !deep && seed == 0});
      c.set_neighbours(random);
      if (deep) c.sums_rows = true;
      c.product.row_sums_row = {1, rows / 4, rows / 4};
      c.bias.resize(columns + 100);
      c.product.bias_column = {1, columns / 4 * 2, columns / 4 * 2 + 100};
      c.fill(random);
      SCOPED_TRACE(::testing::Message() << rows << " x " << columns << " x " << depth);
      for (const Precision precision : {Precision::fp32, Precision::tf32}) {
        check_product(c, precision);
      }
    }
  }
}

// What the models ask for, with depths that end anywhere in a stage: each operand contiguous along
// either axis, in lines that can and that cannot be copied by fours, with and without groups of
// either axis that end within a tile and that do not.
TEST(Product, OfEveryLayoutAgreesWithPlainLoops) {
  const int32_t sizes[][3] = {{68, 64, 64}, {40, 36, 20}, {36, 36, 404}, {12, 68, 9},
                              {9, 40, 17},  {9, 9, 32},   {12, 12, 400}, {1, 64, 400},
                              {64, 1, 400}, {70, 33, 1}};
  const Layout layouts[] = {
      {}, {.pad = 1, .fours = false}, {.group = 16}, {.line_group = 64}, {.line_group = 12}};
  for (const auto& [rows, columns, depth] : sizes) {
    for (const Layout& layout : layouts) {
      for (int way = 0; way < 4; ++way) {
        Layout flipped = layout;
        flipped.transposed = way / 2 != 0;
        const Layout other{.transposed = way % 2 != 0};
        check_product(Case(rows, columns, depth, flipped, other), Precision::fp32);
        check_product(Case(rows, columns, depth, other, flipped), Precision::fp32);
      }
    }
  }
}

}  // namespace
}  // namespace posattn::cuda
