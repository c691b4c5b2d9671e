// Every row of the table of operations has CUDA kernels, but for counts of bits and neurons, and
// they agree with the double reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "posattn/kernels/cuda/operations_test.h"

namespace posattn::cuda {
namespace {

constexpr int trials = 12;

void expect_close(const Buffer<float>& ours, const Buffer<double>& reference, double tolerance) {
  double largest = 0, difference = 0;
  for (size_t i = 0; i < reference.size(); ++i) {
    largest = std::max(largest, std::abs(reference[i]));
    difference = std::max(difference, std::abs(ours[i] - reference[i]));
    ASSERT_FALSE(std::isnan(ours[i]));
  }
  EXPECT_LE(difference, tolerance * largest);
}

class CudaOperations : public ::testing::TestWithParam<Operation> {
 protected:
  // Finds the CUDA row of this operation, or null.
  const CudaOperation* find() const {
    for (const CudaOperation& row : cuda_operations()) {
      if (row.name == GetParam().name) return &row;
    }
    return nullptr;
  }

  void check(const Sizes& sizes, RandomStream& random) {
    const Operation& operation = GetParam();
    Operands<float> inputs, dinputs;
    Operands<double> inputs64, dinputs64;
    for (const int64_t count : operation.input_counts(sizes)) {
      for (float& x : inputs.emplace_back(count)) x = random.uniform(-2, 2);
      inputs64.emplace_back(inputs.back().begin(), inputs.back().end());
      dinputs.emplace_back(count);
      dinputs64.emplace_back(count);
    }
    Buffer<float> output(operation.output_count(sizes)), doutput(output.size());
    for (float& x : doutput) x = random.uniform(-2, 2);
    Buffer<double> output64(output.size());
    const Buffer<double> doutput64(doutput.begin(), doutput.end());
    operation.reference(sizes, inputs64, output64);
    for (const Precision precision : {Precision::fp32, Precision::tf32}) {
      const double tolerance = precision == Precision::fp32 ? 1e-5 : 3e-3;
      find()->forward(precision, sizes, inputs, output);
      expect_close(output, output64, tolerance);
      if (!find()->gradient) continue;
      // A ReLU near its corner may differ: the reference sees the output of the kernel.
      const Buffer<double> ours64(output.begin(), output.end());
      operation.reference_gradient(sizes, inputs64, ours64, doutput64, dinputs64);
      find()->gradient(precision, sizes, inputs, output, doutput, dinputs);
      for (size_t i = 0; i < dinputs.size(); ++i) {
        expect_close(dinputs[i], dinputs64[i], tolerance);
      }
    }
  }
};

TEST_P(CudaOperations, AgreeWithTheReference) {
  const std::string_view name = GetParam().name;
  const bool on_cpu_alone = name == "sign-products" || name == "soft-neurons";
  ASSERT_EQ(find() == nullptr, on_cpu_alone);
  if (on_cpu_alone) return;
  EXPECT_EQ(find()->gradient != nullptr, GetParam().cpu_gradient != nullptr);
  for (int trial = 0; trial < trials; ++trial) {
    RandomStream random(3, Purpose::test_data, 0, trial);
    const Sizes sizes = GetParam().random_sizes(random);
    SCOPED_TRACE(::testing::PrintToString(sizes));
    check(sizes, random);
  }
}

INSTANTIATE_TEST_SUITE_P(Table, CudaOperations, ::testing::ValuesIn(operations()),
                         [](const auto& row) {
                           std::string name = row.param.name;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace posattn::cuda
