// Every row of the table of operations: fp32 kernels on every instruction set of this processor
// against the double reference, and the reference's gradient against finite differences.
#include "posattn/kernels/operations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

namespace posattn {
namespace {

int trials() { return std::getenv("POSATTN_LONG_TESTS") ? 1000 : 60; }

struct Case {
  Sizes sizes;
  Operands<double> inputs;
  Buffer<double> output, doutput;
  Operands<double> dinputs;
  Operands<float> inputs32;
  Buffer<float> output32, doutput32;
  Operands<float> dinputs32;

  Case(const Operation& operation, RandomStream& random) : sizes(operation.random_sizes(random)) {
    const auto draw = [&](int64_t count, Buffer<float>& x, Buffer<double>& x64) {
      x.resize(count);
      for (float& value : x) value = random.uniform(-2, 2);
      x64.assign(x.begin(), x.end());
    };
    for (const int64_t count : operation.input_counts(sizes)) {
      draw(count, inputs32.emplace_back(), inputs.emplace_back());
      dinputs.emplace_back(count);
      dinputs32.emplace_back(count);
    }
    draw(operation.output_count(sizes), doutput32, doutput);
    output.resize(doutput.size());
    output32.resize(doutput.size());
  }
};

void expect_close(const Buffer<float>& ours, const Buffer<double>& reference) {
  double largest = 0, difference = 0;
  for (size_t i = 0; i < reference.size(); ++i) {
    largest = std::max(largest, std::abs(reference[i]));
    difference = std::max(difference, std::abs(ours[i] - reference[i]));
  }
  EXPECT_LE(difference, 1e-5 * largest);
}

double dot(const Buffer<double>& x, const Buffer<double>& y) {
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}

class EveryOperation : public ::testing::TestWithParam<Operation> {};

TEST_P(EveryOperation, KernelsAgreeWithTheReference) {
  const Operation& operation = GetParam();
  int count = 0;
  const TileKernels* const* available = available_tile_kernels(count);
  for (int trial = 0; trial < trials(); ++trial) {
    RandomStream random(1, Purpose::test_data, 0, trial);
    Case c(operation, random);
    operation.reference(c.sizes, c.inputs, c.output);
    if (operation.reference_gradient) {
      operation.reference_gradient(c.sizes, c.inputs, c.output, c.doutput, c.dinputs);
    }
    for (int k = 0; k < count; ++k) {
      SCOPED_TRACE(available[k]->instruction_set);
      operation.cpu(*available[k], c.sizes, c.inputs32, c.output32);
      expect_close(c.output32, c.output);
      if (!operation.cpu_gradient) continue;
      operation.cpu_gradient(*available[k], c.sizes, c.inputs32, c.output32, c.doutput32,
                             c.dinputs32);
      for (size_t i = 0; i < c.dinputs.size(); ++i) expect_close(c.dinputs32[i], c.dinputs[i]);
    }
  }
}

TEST_P(EveryOperation, ReferenceGradientIsTheDerivative) {
  const Operation& operation = GetParam();
  if (!operation.reference_gradient) return;  // an optimiser's step is not differentiated
  for (int trial = 0; trial < trials(); ++trial) {
    RandomStream random(2, Purpose::test_data, 0, trial);
    Case c(operation, random);
    operation.reference(c.sizes, c.inputs, c.output);
    operation.reference_gradient(c.sizes, c.inputs, c.output, c.doutput, c.dinputs);
    for (size_t i = 0; i < c.inputs.size(); ++i) {
      double& x = c.inputs[i][random.below(static_cast<uint32_t>(c.inputs[i].size()))];
      const double expected = c.dinputs[i][&x - c.inputs[i].data()], saved = x;
      // Two steps, since a ReLU's corner may lie inside one.
      double best = 1e30;
      for (const double h : {1e-4, 1e-6}) {
        double value[2];
        for (int side = 0; side < 2; ++side) {
          x = saved + (side ? h : -h);
          operation.reference(c.sizes, c.inputs, c.output);
          value[side] = dot(c.output, c.doutput);
        }
        x = saved;
        best = std::min(best, std::abs((value[1] - value[0]) / (2 * h) - expected));
      }
      EXPECT_LT(best, 1e-6 * (1 + std::abs(expected)));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Table, EveryOperation, ::testing::ValuesIn(operations()),
                         [](const auto& row) {
                           std::string name = row.param.name;
                           std::erase(name, '-');
                           return name;
                         });

// The two kernels that make the gradient of scores one product: with_dots and Store::times.
TEST(ScoresGradient, IsOneProductOnEveryInstructionSet) {
  int count = 0;
  const TileKernels* const* available = available_tile_kernels(count);
  for (int k = 0; k < count; ++k) {
    SCOPED_TRACE(available[k]->instruction_set);
    RandomStream random(9, Purpose::test_data, 0, k);
    const auto numbers = [&](int64_t size) {
      std::vector<float> x(size);
      for (float& v : x) v = random.uniform(-1, 1);
      return x;
    };
    for (int trial = 0; trial < 40; ++trial) {
      const int64_t rows = 1 + random.below(30), columns = 1 + random.below(70);
      const int64_t inner = 1 + random.below(40), ld = columns + 3;
      const auto dy = numbers(rows * inner), y = numbers(rows * inner);
      auto values = numbers((inner + 1) * ld);  // transposed, and a row of ones
      std::fill_n(&values[inner * ld], columns, 1.0f);
      const auto a = numbers(rows * ld);
      std::vector<float> wide(rows * (inner + 1)), ds(rows * ld, 7.0f);
      available[k]->with_dots(rows, inner, dy.data(), inner, y.data(), inner, wide.data(),
                              inner + 1);
      available[k]->product(rows, columns, inner + 1, wide.data(), inner + 1, 1, values.data(), ld,
                            ds.data(), ld, Store::times, a.data());
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < ld; ++j) {
          double expected = 0;
          for (int64_t c = 0; c < inner; ++c) {
            expected += double{dy[i * inner + c]} * (double{values[c * ld + j]} - y[i * inner + c]);
          }
          expected *= a[i * ld + j];
          EXPECT_NEAR(ds[i * ld + j], j < columns ? expected : 7.0, 2e-5) << i << ", " << j;
        }
      }
    }
  }
}

TEST(SignProducts, EqualTheProductsExactlyZerosIncluded) {
  int count = 0;
  const TileKernels* const* available = available_tile_kernels(count);
  for (int k = 0; k < count; ++k) {
    SCOPED_TRACE(available[k]->instruction_set);
    RandomStream random(10, Purpose::test_data, 0, 0);
    for (int trial = 0; trial < 40; ++trial) {
      const int64_t rows = 1 + random.below(9), columns = 1 + random.below(9);
      const int64_t size = 1 + random.below(300);
      const float values[] = {-3, -1e-38f, -0.0f, 0, 1e-38f, 0.25f, INFINITY};
      std::vector<float> x(rows * size), y(columns * size), out(rows * columns);
      for (float& v : x) v = values[random.below(7)];
      for (float& v : y) v = values[random.below(7)];
      std::vector<uint64_t> packed(2 * (rows + columns) * ((size + 63) / 64));
      available[k]->sign_products(rows, columns, size, x.data(), y.data(), packed.data(),
                                  out.data());
      const auto sign = [](float v) { return (v > 0) - (v < 0); };
      for (int64_t i = 0; i < rows * columns; ++i) {
        int expected = 0;
        for (int64_t c = 0; c < size; ++c) {
          expected += sign(x[i / columns * size + c]) * sign(y[i % columns * size + c]);
        }
        EXPECT_EQ(out[i], static_cast<float>(expected));
      }
    }
  }
}

TEST(Softmax, IsExactlyOneHotForLargeScoresAndKeepsNaN) {
  int count = 0;
  const TileKernels* const* available = available_tile_kernels(count);
  for (int k = 0; k < count; ++k) {
    SCOPED_TRACE(available[k]->instruction_set);
    float x[20] = {};
    x[3] = 104;
    available[k]->softmax_rows(1, 19, 20, x);
    for (int i = 0; i < 20; ++i) EXPECT_EQ(x[i], i == 3 ? 1.0f : 0.0f);
    x[17] = NAN;
    available[k]->softmax_rows(1, 19, 20, x);
    EXPECT_TRUE(std::isnan(x[0]));
  }
}

}  // namespace
}  // namespace posattn
