#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "posattn/base/random.h"
#include "posattn/kernels/cuda/gates.h"
#include "posattn/kernels/cuda/runtime.h"

namespace posattn::cuda {
namespace {

constexpr int slots = 2, rows = 70, columns = 5, size = slots * rows * columns;

// Slot 1 rests.
class CudaGates : public ::testing::Test {
 protected:
  CudaGates() : steps(std::vector<SlotStep>{{1, 1, 1}, {0, 0, 0}}) {
    RandomStream random(5, Purpose::test_data, 0, 0);
    for (auto* values : {&p, &x, &dy}) {
      for (int i = 0; i < size; ++i) values->push_back(random.uniform(-3, 3));
    }
  }
  static double gate(double p) { return 2 / (1 + std::exp(-p)); }
  static Rows<float> rows_of(DeviceBuffer<float>& buffer) {
    return {buffer.data(), rows * columns, columns};
  }
  std::vector<float> p, x, dy;
  DeviceBuffer<SlotStep> steps;
};

TEST_F(CudaGates, Multiply) {
  DeviceBuffer<float> gates(p), values(x);
  for (const bool accumulate : {false, true}) {
    DeviceBuffer<float> y(dy);
    enqueue_gate(slots, rows, columns, rows_of(gates), rows_of(values), rows_of(y), accumulate,
                 steps.data(), nullptr);
    const std::vector<float> result = y.download();
    for (int i = 0; i < size; ++i) {
      const double expected = gate(p[i]) * x[i] + (accumulate ? dy[i] : 0.0f);
      EXPECT_NEAR(result[i], i < size / slots ? expected : dy[i], 2e-6) << i;
    }
  }
}

// d(g x) = g dx + x dg, and dg / dp = g (1 - g / 2).
TEST_F(CudaGates, HaveTheGradientOfTheProduct) {
  for (const bool relu : {false, true}) {
    std::vector<float> read = x;
    for (float& value : read) value = relu ? std::max(value, 0.0f) : value;
    DeviceBuffer<float> gates(p), values(read), d(dy);
    DeviceBuffer<float> dp(size);
    enqueue_gate_gradient(slots, rows, columns, rows_of(gates), rows_of(values), rows_of(d),
                          rows_of(d), rows_of(dp), relu, steps.data(), nullptr);
    const std::vector<float> dx = d.download(), dgates = dp.download();
    for (int i = 0; i < size; ++i) {
      const bool rests = i >= size / slots;
      const double slope = (gate(p[i] + 1e-6) - gate(p[i] - 1e-6)) / 2e-6;
      const double past_relu = relu && read[i] <= 0 ? 0 : gate(p[i]) * dy[i];
      EXPECT_NEAR(dx[i], rests ? dy[i] : past_relu, 2e-6) << i;
      EXPECT_NEAR(dgates[i], rests ? 0 : dy[i] * read[i] * slope, 3e-6) << i;
    }
  }
}

TEST_F(CudaGates, OfZeroChangeNothing) {
  DeviceBuffer<float> gates(std::vector<float>(size, 0.0f)), values(x), y(dy);
  enqueue_gate(slots, rows, columns, rows_of(gates), rows_of(values), rows_of(y), false, nullptr,
               nullptr);
  EXPECT_EQ(y.download(), x);
}

}  // namespace
}  // namespace posattn::cuda
