// Attention in one kernel, and mixing by a shared one, against plain loops in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "posattn/base/random.h"
#include "posattn/kernels/cuda/attention.h"
#include "posattn/kernels/cuda/product.h"
#include "posattn/kernels/cuda/runtime.h"
#include "posattn/kernels/cuda/shared_attention.h"

namespace posattn::cuda {
namespace {

using Numbers = std::vector<double>;

std::vector<float> random_floats(int64_t count, RandomStream& random) {
  std::vector<float> values(count);
  for (float& x : values) x = random.uniform(-1, 1);
  return values;
}

void expect_near(const std::vector<float>& ours, const Numbers& expected, double tolerance) {
  ASSERT_EQ(ours.size(), expected.size());
  double largest = 0;
  for (const double x : expected) largest = std::max(largest, std::abs(x));
  for (size_t i = 0; i < ours.size(); ++i) {
    ASSERT_NEAR(ours[i], expected[i], tolerance * largest) << "place " << i;
  }
}

double tolerance(Precision precision) { return precision == Precision::fp32 ? 3e-6 : 3e-3; }

// Slot 1 of two; slot 0 rests, and must stay as it was.
template <class T>
std::vector<T> second_half(const std::vector<T>& values) {
  const auto middle = values.begin() + static_cast<int64_t>(values.size()) / 2;
  EXPECT_TRUE(std::all_of(values.begin(), middle, [](T x) { return x == 0; }));
  return {middle, values.end()};
}

const std::vector<SlotStep> second_works(int32_t real_nodes) {
  return {{0, real_nodes, 0}, {1, real_nodes, 1}};
}

// One head of a sample: weights, their mixture, and gradients from dmixed.
struct HeadReference {
  const AttentionShape& shape;
  int32_t real_nodes;
  int sample, head;

  int64_t at(int node, int column) const {
    return (int64_t{1} * node * shape.samples + sample) * shape.columns() + column;
  }
  int64_t query(int node, int c) const { return at(node, 2 * head * shape.key_size + c); }
  int64_t key(int node, int c) const { return query(node, shape.key_size + c); }
  int64_t value(int node, int c) const {
    return at(node, 2 * shape.heads * shape.key_size + head * shape.head_size + c);
  }
  int64_t mixed(int node, int c) const {
    return (int64_t{1} * node * shape.samples + sample) * shape.heads * shape.head_size +
           head * shape.head_size + c;
  }
  bool attends(int i, int j) const {
    return (shape.attended.causal_nodes == 0 || j <= i) &&
           (j < real_nodes || j >= shape.attended.absent_end);
  }

  Numbers weights(const std::vector<float>& source, int i) const {
    Numbers result(shape.nodes);
    double sum = 0;
    for (int j = 0; j < shape.nodes; ++j) {
      if (!attends(i, j)) continue;
      double score = 0;
      for (int c = 0; c < shape.key_size; ++c) {
        score += static_cast<double>(source[query(i, c)]) * source[key(j, c)];
      }
      sum += result[j] = std::exp(score / std::sqrt(shape.key_size));
    }
    for (double& x : result) x /= sum;
    return result;
  }
  void forward(const std::vector<float>& source, Numbers& to) const {
    for (int i = 0; i < shape.nodes; ++i) {
      const Numbers weight = weights(source, i);
      for (int c = 0; c < shape.head_size; ++c) {
        for (int j = 0; j < shape.nodes; ++j) to[mixed(i, c)] += weight[j] * source[value(j, c)];
      }
    }
  }
  void backward(const std::vector<float>& source, const std::vector<float>& dmixed,
                Numbers& dsource) const {
    for (int i = 0; i < shape.nodes; ++i) {
      const Numbers weight = weights(source, i);
      Numbers dweight(shape.nodes);
      double dot = 0;
      for (int j = 0; j < shape.nodes; ++j) {
        for (int c = 0; c < shape.head_size; ++c) {
          const double d = dmixed[mixed(i, c)];
          dweight[j] += d * source[value(j, c)];
          dsource[value(j, c)] += d * weight[j];
        }
        dot += weight[j] * dweight[j];
      }
      for (int j = 0; j < shape.nodes; ++j) {
        const double dscore = weight[j] * (dweight[j] - dot) / std::sqrt(shape.key_size);
        for (int c = 0; c < shape.key_size; ++c) {
          dsource[query(i, c)] += dscore * source[key(j, c)];
          dsource[key(j, c)] += dscore * source[query(i, c)];
        }
      }
    }
  }
};

void check_attention(AttentionShape shape, int32_t real_nodes, Precision precision) {
  shape.slots = 2;
  RandomStream random(17, Purpose::test_data, 0, shape.nodes);
  const int64_t columns = shape.columns(), width = int64_t{1} * shape.heads * shape.head_size;
  const std::vector<float> source = random_floats(2 * shape.rows() * columns, random);
  const std::vector<float> dmixed = random_floats(2 * shape.rows() * width, random);
  const DeviceBuffer<SlotStep> steps(second_works(real_nodes));
  const DeviceBuffer<float> device_source(source), device_dmixed(dmixed);
  DeviceBuffer<float> mixed(2 * shape.rows() * width), totals(2 * shape.rows() * shape.heads);
  DeviceBuffer<float> dsource(2 * shape.rows() * columns);
  const Rows<const float> sources{device_source.data(), shape.rows() * columns, columns};
  const Rows<float> mixes{mixed.data(), shape.rows() * width, width};
  const Rows<float> of_totals{totals.data(), shape.rows() * shape.heads, shape.heads};
  enqueue_attention(shape, sources, mixes, of_totals, precision, steps.data(), nullptr);
  enqueue_attention_gradient(
      shape, sources, mixes, of_totals, {device_dmixed.data(), shape.rows() * width, width},
      {dsource.data(), shape.rows() * columns, columns}, precision, steps.data(), nullptr);

  const std::vector<float> own_source(source.begin() + shape.rows() * columns, source.end());
  const std::vector<float> own_dmixed(dmixed.begin() + shape.rows() * width, dmixed.end());
  Numbers expected(shape.rows() * width), dexpected(shape.rows() * columns);
  for (int sample = 0; sample < shape.samples; ++sample) {
    for (int head = 0; head < shape.heads; ++head) {
      const HeadReference reference{shape, real_nodes, sample, head};
      reference.forward(own_source, expected);
      reference.backward(own_source, own_dmixed, dexpected);
    }
  }
  expect_near(second_half(mixed.download()), expected, tolerance(precision));
  expect_near(second_half(dsource.download()), dexpected, 2 * tolerance(precision));
}

TEST(Attention, AgreesWithPlainLoops) {
  // Nodes, samples, heads, key size, head size; causal or not; all nodes there or not.
  const AttentionShape shapes[] = {{1, 37, 2, 3, 20, 20, {37, 37}}, {1, 16, 3, 1, 8, 4, {14, 0}},
                                   {1, 33, 1, 2, 32, 16, {32, 0}},  {1, 99, 1, 1, 12, 28, {0, 99}},
                                   {1, 20, 1, 1, 40, 64, {18, 20}}, {1, 1, 2, 1, 4, 4, {1, 1}}};
  for (const AttentionShape& shape : shapes) {
    SCOPED_TRACE(::testing::Message() << shape.nodes << " nodes");
    ASSERT_TRUE(attention_fits(shape.nodes, shape.heads, shape.key_size, shape.head_size));
    for (const Precision precision : {Precision::fp32, Precision::tf32}) {
      check_attention(shape, std::max(1, shape.attended.absent_end - 3), precision);
    }
  }
  EXPECT_FALSE(attention_fits(129, 1, 8, 8));
  EXPECT_FALSE(attention_fits(9, 1, 7, 8));
  EXPECT_FALSE(attention_fits(9, 1, 8, 68));
}

void check_mixing(MixingShape shape, Precision precision) {
  shape.slots = 2;
  RandomStream random(18, Purpose::test_data, 0, shape.nodes);
  const int64_t stride = (shape.nodes + 3) / 4 * 4, rows = int64_t{1} * shape.nodes * shape.samples;
  const int64_t width = int64_t{1} * shape.heads * shape.head_size;
  const int64_t weights = shape.heads * shape.nodes * stride;
  const std::vector<float> attention = random_floats(2 * weights, random);
  const std::vector<float> x = random_floats(2 * rows * width, random);
  const std::vector<float> dy = random_floats(2 * rows * width, random);
  const DeviceBuffer<SlotStep> steps(second_works(shape.nodes));
  const DeviceBuffer<float> device_attention(attention), device_x(x), device_dy(dy);
  DeviceBuffer<float> y(2 * rows * width), dx(2 * rows * width), dattention(2 * weights);
  DeviceBuffer<float> workspace(2 * product_workspace);
  const Rows<const float> a{device_attention.data(), weights, stride};
  const auto of = [&](auto* data) {
    return Rows<std::remove_pointer_t<decltype(data)>>{data, rows * width, width};
  };
  enqueue_mixing(shape, a, false, of(device_x.data()), of(y.data()), precision, steps.data(),
                 nullptr);
  enqueue_mixing(shape, a, true, of(device_dy.data()), of(dx.data()), precision, steps.data(),
                 nullptr);
  enqueue_attention_weights_gradient(shape, of(device_x.data()), of(device_dy.data()),
                                     {dattention.data(), weights, stride}, precision, steps.data(),
                                     workspace.data(), nullptr);

  Numbers expected(rows * width), dexpected(rows * width), dweights(weights);
  std::vector<float> ours = second_half(dattention.download());
  for (int i = 0; i < shape.nodes; ++i) {
    for (int j = 0; j < shape.nodes; ++j) {
      for (int h = 0; h < shape.heads; ++h) {
        const int64_t place = (int64_t{1} * h * shape.nodes + i) * stride + j;
        if (shape.causal && j > i) {
          ours[place] = 0;
          continue;
        }
        for (int s = 0; s < shape.samples; ++s) {
          for (int c = 0; c < shape.head_size; ++c) {
            const int64_t column = h * shape.head_size + c;
            const int64_t to = (int64_t{1} * i * shape.samples + s) * width + column;
            const int64_t from = (int64_t{1} * j * shape.samples + s) * width + column;
            const double weight = attention[weights + place];
            expected[to] += weight * x[rows * width + from];
            dexpected[from] += weight * dy[rows * width + to];
            dweights[place] += static_cast<double>(dy[rows * width + to]) * x[rows * width + from];
          }
        }
      }
      for (int h = 0; h < shape.heads && j == 0; ++h) {  // what lies between rows
        for (int64_t pad = shape.nodes; pad < stride; ++pad) {
          ours[(int64_t{1} * h * shape.nodes + i) * stride + pad] = 0;
        }
      }
    }
  }
  expect_near(second_half(y.download()), expected, tolerance(precision));
  expect_near(second_half(dx.download()), dexpected, tolerance(precision));
  expect_near(ours, dweights, tolerance(precision));
}

TEST(SharedAttention, MixesAsPlainLoopsDo) {
  const MixingShape shapes[] = {{1, 37, 18, 2, 20, true}, {1, 16, 3, 1, 8, false},
                                {1, 33, 40, 1, 28, true}, {1, 99, 2, 1, 16, false},
                                {1, 10, 5, 2, 36, false}, {1, 1, 2, 1, 4, true}};
  for (const MixingShape& shape : shapes) {
    SCOPED_TRACE(::testing::Message() << shape.nodes << " nodes");
    ASSERT_TRUE(mixing_fits(shape.nodes, shape.head_size));
    for (const Precision precision : {Precision::fp32, Precision::tf32}) {
      check_mixing(shape, precision);
    }
  }
  EXPECT_FALSE(mixing_fits(129, 8));
  EXPECT_FALSE(mixing_fits(8, 6));
}

}  // namespace
}  // namespace posattn::cuda
