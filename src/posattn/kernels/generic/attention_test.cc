// Attention and linear maps of the block executor, in float on every instruction set of this
// processor, against the double loops.
#include "posattn/kernels/generic/attention.h"

#include <gtest/gtest.h>

#include <cmath>

#include "posattn/base/random.h"
#include "posattn/kernels/generic/linear.h"

namespace posattn {
namespace {

struct Numbers {
  std::vector<float> narrow;
  std::vector<double> wide;

  explicit Numbers(int64_t count) : narrow(count), wide(count) {}
  Numbers(int64_t count, RandomStream& random) : Numbers(count) {
    for (float& x : narrow) x = random.uniform(-2, 2);
    wide.assign(narrow.begin(), narrow.end());
  }
  void expect_close(const char* what) const {
    double largest = 0, difference = 0;
    for (size_t i = 0; i < wide.size(); ++i) {
      largest = std::max(largest, std::abs(wide[i]));
      difference = std::max(difference, std::abs(narrow[i] - wide[i]));
      ASSERT_FALSE(std::isnan(narrow[i])) << what;
    }
    EXPECT_LE(difference, 1e-5 * largest) << what;
  }
};

class OnEveryInstructionSet : public ::testing::Test {
 protected:
  template <class Check>
  void on_each(const Check& check) {
    int count = 0;
    const TileKernels* const* available = available_tile_kernels(count);
    for (int i = 0; i < count; ++i) {
      SCOPED_TRACE(available[i]->instruction_set);
      check(*available[i]);
    }
  }
};

using PlainAttention = OnEveryInstructionSet;
using PlainLinear = OnEveryInstructionSet;

TEST_F(PlainAttention, AgreesWithTheReference) {
  on_each([](const TileKernels& kernels) {
    for (int trial = 0; trial < 30; ++trial) {
      RandomStream random(1, Purpose::test_data, 0, trial);
      generic::HeadShape shape{
          .causal = trial % 2 == 0, .nodes = 1 + random.below(60), .size = 1 + random.below(40)};
      shape.stride = shape.size + random.below(30);
      SCOPED_TRACE(::testing::Message() << shape.nodes << " nodes, " << shape.size << " columns");
      const int64_t count = shape.nodes * shape.stride, pairs = shape.nodes * shape.nodes;
      const Numbers q(count, random), k(count, random), v(count, random), dy(count, random),
          bias(pairs, random);
      Numbers a(pairs), y(count), da(pairs), dq(count), dk(count), dv(count);
      const auto run = [&](auto part, auto& scratch) {
        generic::attention_matrix(shape, part(q), part(k), trial % 3 == 0 ? part(bias) : nullptr,
                                  part(a), scratch, kernels);
        generic::mix(shape, part(a), part(v), part(y), kernels);
        generic::mix_gradient(shape, part(a), part(v), part(dy), part(dv), false, part(da), scratch,
                              kernels);
        generic::attention_matrix_gradient(shape, part(q), part(k), part(a), part(da), part(dq),
                                           part(dk), kernels);
      };
      std::vector<float> scratch;
      std::vector<double> scratch64;
      run([](auto& numbers) { return numbers.narrow.data(); }, scratch);
      run([](auto& numbers) { return numbers.wide.data(); }, scratch64);
      a.expect_close("attention");
      y.expect_close("y");
      dv.expect_close("dv");
      dq.expect_close("dq");
      dk.expect_close("dk");
    }
  });
}

// A gradient that is shared by samples is added to, and masked places have no attention at all.
TEST_F(PlainAttention, AddsAndHearsNothingAhead) {
  on_each([](const TileKernels& kernels) {
    RandomStream random(2, Purpose::test_data, 0, 0);
    const generic::HeadShape shape{.causal = true, .nodes = 31, .size = 5, .stride = 7};
    const Numbers q(31 * 7, random), k(31 * 7, random), dy(31 * 7, random);
    Numbers a(31 * 31), dv(31 * 7), once(31 * 31), twice(31 * 31);
    std::vector<float> scratch;
    generic::attention_matrix<float>(shape, q.narrow.data(), k.narrow.data(), nullptr,
                                     a.narrow.data(), scratch, kernels);
    for (Numbers* da : {&once, &twice, &twice}) {
      generic::mix_gradient(shape, a.narrow.data(), q.narrow.data(), dy.narrow.data(),
                            dv.narrow.data(), true, da->narrow.data(), scratch, kernels);
    }
    for (int64_t i = 0; i < 31; ++i) {
      for (int64_t j = 0; j < 31; ++j) {
        if (j > i) {
          EXPECT_EQ(a.narrow[i * 31 + j], 0.0f);
        }
        EXPECT_EQ(twice.narrow[i * 31 + j], 2 * once.narrow[i * 31 + j]);
      }
    }
  });
}

// Small weights take the tile kernels, large ones OpenBLAS.
TEST_F(PlainLinear, AgreesWithTheReference) {
  on_each([](const TileKernels& kernels) {
    for (int trial = 0; trial < 20; ++trial) {
      RandomStream random(3, Purpose::test_data, 0, trial);
      const bool large = trial % 10 == 0, biased = trial % 3 != 0, accumulate = trial % 2 == 0;
      const int64_t rows = 1 + random.below(30), in = large ? 530 : 1 + random.below(70),
                    out = large ? 520 : 1 + random.below(70);
      SCOPED_TRACE(::testing::Message() << rows << " rows, " << in << " to " << out);
      const Numbers x(rows * in, random), weight(out * in, random), bias(out, random),
          dy(rows * out, random);
      Numbers y(rows * out), dx(rows * in, random), dweight(out * in, random), dbias(out, random);
      std::vector<float> transposed(in * out);
      kernels.transpose(out, in, weight.narrow.data(), in, transposed.data(), out);
      const auto run = [&](auto part, const auto* turned) {
        generic::linear(rows, in, out, part(x), part(weight), turned, biased ? part(bias) : nullptr,
                        part(y), kernels);
        generic::linear_input_gradient(rows, in, out, part(weight), part(dy), accumulate, part(dx),
                                       kernels);
        generic::linear_weight_gradient(rows, in, out, part(x), part(dy), part(dweight),
                                        biased ? part(dbias) : nullptr, kernels);
      };
      run([](auto& numbers) { return numbers.narrow.data(); }, transposed.data());
      run([](auto& numbers) { return numbers.wide.data(); }, static_cast<const double*>(nullptr));
      y.expect_close("y");
      dx.expect_close("dx");
      dweight.expect_close("dW");
      dbias.expect_close("db");
    }
  });
}

TEST_F(PlainAttention, ExponentialIsThatOfTheLibrary) {
  on_each([](const TileKernels& kernels) {
    std::vector<float> x;
    for (float value = -86.5f; value < 88; value += 0.37f) x.push_back(value);
    std::vector<float> y(x.size());
    kernels.exponential(static_cast<int64_t>(x.size()), x.data(), y.data());
    for (size_t i = 0; i < x.size(); ++i) {
      const double expected = std::exp(static_cast<double>(x[i]));
      EXPECT_NEAR(y[i], expected, 2e-7 * expected) << x[i];
    }
    float ends[] = {-200, 89, INFINITY, -INFINITY, NAN, 0};
    kernels.exponential(6, ends, ends);
    EXPECT_EQ(ends[0], 0);
    EXPECT_EQ(ends[1], INFINITY);
    EXPECT_EQ(ends[2], INFINITY);
    EXPECT_EQ(ends[3], 0);
    EXPECT_TRUE(std::isnan(ends[4]));
    EXPECT_EQ(ends[5], 1);
  });
}

}  // namespace
}  // namespace posattn
