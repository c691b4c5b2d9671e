#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "posattn/base/random.h"
#include "posattn/model/cuda/folding/folding.h"
#include "posattn/model/cuda/step/position_tables.h"

namespace posattn::cuda {
namespace {

constexpr int map_floats = 64 * 64;

// Where tile.cuh's products look for W(n, k): for each 16 columns and 8 rows four numbers of every
// lane, row n % 8 and columns 2 t, 2 t + 1, 2 t + 8, 2 t + 9.
int packed_place(int n, int k) {
  const int block = k / 16 * 8 + n / 8, lane = n % 8 * 4 + k % 8 / 2;
  return block * 128 + lane * 4 + k % 16 / 8 * 2 + k % 2;
}

struct Case {
  const char* name;
  const char* preset;
  int real_nodes, scratch_nodes, depth, heads;
  Encoding encoding;
};

ModelSpec spec_of(const Case& c) {
  ModelSpec spec;
  apply_preset(c.preset, spec);
  spec.real_nodes = c.real_nodes;
  spec.scratch_nodes = c.scratch_nodes;
  spec.depth = c.depth;
  spec.heads = c.heads;
  spec.encoding = c.encoding;
  return resolve(spec);
}

// Row-major [rows, columns].
struct Matrix {
  int rows, columns;
  std::vector<double> values;
  Matrix(int r, int c) : rows(r), columns(c), values(static_cast<size_t>(r) * c) {}
  double& operator()(int i, int j) { return values[static_cast<size_t>(i) * columns + j]; }
  double operator()(int i, int j) const { return values[static_cast<size_t>(i) * columns + j]; }
};

Matrix operator*(const Matrix& x, const Matrix& y) {
  Matrix out(x.rows, y.columns);
  for (int i = 0; i < x.rows; ++i) {
    for (int k = 0; k < x.columns; ++k) {
      for (int j = 0; j < y.columns; ++j) out(i, j) += x(i, k) * y(k, j);
    }
  }
  return out;
}
Matrix operator+(Matrix x, const Matrix& y) {
  for (size_t i = 0; i < x.values.size(); ++i) x.values[i] += y.values[i];
  return x;
}
Matrix transposed(const Matrix& x) {
  Matrix out(x.columns, x.rows);
  for (int i = 0; i < x.rows; ++i) {
    for (int j = 0; j < x.columns; ++j) out(j, i) = x(i, j);
  }
  return out;
}
// Rows and columns of x from the given ones on.
Matrix part(const Matrix& x, int row, int rows, int column, int columns) {
  Matrix out(rows, columns);
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) out(i, j) = x(row + i, column + j);
  }
  return out;
}

// The folded weights in double, each formula written down as it stands in folded_stage.h.
class PlainFold {
 public:
  PlainFold(const ModelSpec& spec, const Parameters<double>& parameters, int real_nodes)
      : spec_(spec), parameters_(parameters), layout_(spec), real_nodes_(real_nodes) {}

  std::vector<double> operator()() {
    folded_.assign(layout_.size(), 0.0);
    for (int layer = 0; layer < spec_.depth; ++layer) fold_layer(layer);
    const std::string last = name(spec_.depth - 1, "mlp.mlp.2");
    const Matrix decoder = tensor("decoding.weight", 1, 64);
    put(decoder * tensor(last + ".weight", 64, 64), layout_.decoder());
    put(decoder * tensor(last + ".bias", 64, 1) + tensor("decoding.bias", 1, 1),
        layout_.decoder_bias());
    return folded_;
  }

  bool absent(int node) const { return node >= real_nodes_ && node < spec_.real_nodes; }

 private:
  static std::string name(int layer, const std::string& tensor) {
    return "transformer_layers." + std::to_string(layer) + "." + tensor;
  }
  Matrix tensor(const std::string& tensor_name, int rows, int columns) const {
    const auto from = parameters_[tensor_name];
    Matrix out(rows, columns);
    std::copy_n(from.begin(), out.values.size(), out.values.begin());
    return out;
  }
  void put(const Matrix& x, int64_t place) {
    std::copy(x.values.begin(), x.values.end(), folded_.begin() + place);
  }

  void fold_layer(int l) {
    const std::string enter = l == 0 ? "encoding" : name(l - 1, "mlp.mlp.2");
    const int k = layout_.columns(l), size = spec_.head_size();
    const Matrix e_weight = tensor(enter + ".weight", 64, k), e = tensor(enter + ".bias", 64, 1);
    const Matrix w1 = tensor(name(l, "mlp.mlp.0.weight"), 64, 128);
    const Matrix w1x = part(w1, 0, 64, 0, 64), w1o = part(w1, 0, 64, 64, 64);
    const Matrix wv = tensor(name(l, "attn.v_proj.weight"), 64, 64);
    const Matrix wo = tensor(name(l, "attn.o_proj.weight"), 64, 64);
    Matrix c = w1x * e + tensor(name(l, "mlp.mlp.0.bias"), 64, 1) +
               w1o * (wo * tensor(name(l, "attn.v_proj.bias"), 64, 1) +
                      tensor(name(l, "attn.o_proj.bias"), 64, 1));
    put(w1x * e_weight, layout_.maps(l));
    for (int h = 0; h < spec_.heads; ++h) {
      const Matrix b = w1o * part(wo, 0, 64, h * size, size) * part(wv, h * size, size, 0, 64);
      put(b * e_weight, layout_.maps(l) + (1 + h) * 64 * k);
      c = c + b * e;
      if (layout_.from_data) {
        fold_scores(l, h, e_weight, e);
      } else {
        fold_attention(l, h);
      }
    }
    put(c, layout_.constant(l));
  }

  void fold_scores(int l, int h, const Matrix& e_weight, const Matrix& e) {
    const int k = e_weight.columns;
    const Matrix weight = tensor(name(l, "attn.qk_proj.weight"), 128 * spec_.heads, 64);
    const Matrix bias = tensor(name(l, "attn.qk_proj.bias"), 128 * spec_.heads, 1);
    const Matrix wq = part(weight, 128 * h, 64, 0, 64), wk = part(weight, 128 * h + 64, 64, 0, 64);
    const Matrix key = wk * e_weight;
    Matrix g_matrix = transposed(wq * e_weight) * key;
    Matrix g = transposed(key) * (wq * e + part(bias, 128 * h, 64, 0, 1));
    for (double& x : g_matrix.values) x /= 8;
    for (double& x : g.values) x /= 8;
    put(g_matrix, layout_.scores(l) + h * k * k);
    put(g, layout_.score_bias(l) + h * k);
  }

  void fold_attention(int l, int h) {
    const int n = spec_.nodes(), p = spec_.encoding_size;
    Matrix scores(n, n);
    if (spec_.scores == Scores::direct) {
      scores = part(tensor(name(l, "attn.scores"), spec_.heads * n, n), h * n, n, 0, n);
    } else {
      const Matrix weight = tensor(name(l, "attn.qk_proj.weight"), 2 * p * spec_.heads, p);
      const Matrix bias = tensor(name(l, "attn.qk_proj.bias"), 2 * p * spec_.heads, 1);
      Matrix positions(n, p);
      positions.values = positions_of(spec_, parameters_);
      Matrix side[2] = {positions * transposed(part(weight, 2 * p * h, p, 0, p)),
                        positions * transposed(part(weight, 2 * p * h + p, p, 0, p))};
      for (int s = 0; s < 2; ++s) {
        for (int i = 0; i < n; ++i) {
          for (int j = 0; j < p; ++j) side[s](i, j) += bias((2 * h + s) * p + j, 0);
        }
      }
      scores = side[0] * transposed(side[1]);
      for (double& x : scores.values) x /= std::sqrt(p);
    }
    for (int i = 0; i < n; ++i) {
      double total = 0;
      for (int j = 0; j < n; ++j) total += absent(j) ? 0 : std::exp(scores(i, j));
      for (int j = 0; j < n; ++j) {
        scores(i, j) = absent(j) ? 0 : std::exp(scores(i, j)) / total;
      }
    }
    put(scores, layout_.attention(l) + int64_t{1} * h * n * n);
  }

  const ModelSpec& spec_;
  const Parameters<double>& parameters_;
  const FoldedLayout layout_;
  const int real_nodes_;
  std::vector<double> folded_;
};

// Slots 0 and 1 work, slot 1 at a shorter length; slot 2 rests.
constexpr int slots = 3;
constexpr float untouched = -77.0f;

class FoldingTest : public testing::TestWithParam<Case> {
 protected:
  void make(Precision precision) {
    shape_ = {spec_of(GetParam()), slots, 16, precision};
    ASSERT_TRUE(Folding::supports(shape_.spec));
    const int64_t size = ParameterLayout(shape_.spec).buffer_size();
    std::vector<float> all(slots * size);
    parameters_.clear();
    for (int slot = 0; slot < slots; ++slot) {
      Parameters<float> one(shape_.spec);
      initialise(one, 100 + slot);
      RandomStream random(7, Purpose::initial_values, 1, slot);
      for (const TensorInfo& tensor : one.layout().tensors()) {
        if (!tensor.trained) continue;
        for (float& x : one.slice(tensor)) x += random.uniform(-0.1f, 0.1f);
      }
      std::copy(one.values().begin(), one.values().end(), all.begin() + slot * size);
      parameters_.push_back(to_double(one));
    }
    const int shorter = std::max(1, shape_.spec.real_nodes - 2);
    real_nodes_ = {shape_.spec.real_nodes, shorter, shape_.spec.real_nodes};
    steps_ = DeviceBuffer<SlotStep>(std::vector<SlotStep>{
        {16, real_nodes_[0], 1}, {16, real_nodes_[1], 1}, {0, real_nodes_[2], 1}});
    device_parameters_ = DeviceBuffer<float>(all);

    const FoldedLayout layout(shape_.spec);
    const int64_t maps = int64_t{slots} * (shape_.spec.depth - 1) * map_floats;
    const auto fresh = [](int64_t count) {
      return DeviceBuffer<float>(std::vector<float>(count, untouched));
    };
    natural_ = fresh(slots * layout.size());
    forward_ = fresh(maps * (1 + layout.heads));
    backward_ = fresh(maps * (1 + layout.heads));
    score_forward_ = fresh(layout.from_data ? maps * layout.heads : 0);
    score_backward_ = fresh(layout.from_data ? maps * layout.heads : 0);
    packed_ = {forward_.data(), backward_.data(), score_forward_.data(), score_backward_.data()};
    positions_ = DeviceBuffer<float>(positions_table(shape_.spec));
    step_.slots = steps_.data();
    step_.parameters = device_parameters_.data();
    step_.folded = natural_.data();
    folded_gradients_ = fresh(slots * layout.size());
    gradients_ = fresh(static_cast<int64_t>(all.size()));
    step_.folded_gradients = folded_gradients_.data();
    step_.gradients = gradients_.data();
  }
  void fold(Folding& folding) {
    folding.enqueue_fold(step_, packed_);
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }

  FleetShape shape_;
  std::vector<Parameters<double>> parameters_;
  std::vector<int> real_nodes_;
  DeviceBuffer<SlotStep> steps_;
  DeviceBuffer<float> device_parameters_, natural_, forward_, backward_, score_forward_,
      score_backward_, positions_, folded_gradients_, gradients_;
  PackedMaps packed_;
  FoldingStep step_;
};

// Packed against natural: [slots, depth - 1, count] maps; X(n, k) or, transposed, X(k, n).
void expect_packed(const std::vector<float>& packed, const std::vector<float>& natural,
                   const FoldedLayout& layout, int count, bool scores, bool transposed,
                   bool exact) {
  for (int slot = 0; slot < 2; ++slot) {
    for (int layer = 1; layer < layout.depth; ++layer) {
      const int64_t place = scores ? layout.scores(layer) : layout.maps(layer);
      for (int m = 0; m < count; ++m) {
        const float* from = &natural[slot * layout.size() + place + m * map_floats];
        const float* to =
            &packed[((slot * (layout.depth - 1) + layer - 1) * count + m) * map_floats];
        int wrong = 0;
        for (int n = 0; n < 64; ++n) {
          for (int k = 0; k < 64; ++k) {
            const float x = transposed ? from[k * 64 + n] : from[n * 64 + k];
            const float y = to[packed_place(n, k)];
            wrong += std::bit_cast<uint32_t>(y) !=
                     std::bit_cast<uint32_t>(x) + (exact ? 0u : 0x1000u);  // round_to_tf32
          }
        }
        EXPECT_EQ(wrong, 0) << "slot " << slot << ", layer " << layer << ", map " << m;
      }
    }
  }
}

TEST_P(FoldingTest, FoldsAsThePlainFormulasDo) {
  make(Precision::fp32);
  Folding folding(shape_, positions_.data());
  fold(folding);
  const FoldedLayout layout(shape_.spec);
  const std::vector<float> natural = natural_.download();
  for (int slot = 0; slot < 2; ++slot) {
    PlainFold plain(shape_.spec, parameters_[slot], real_nodes_[slot]);
    const std::vector<double> expected = plain();
    double largest = 0;
    for (const double x : expected) largest = std::max(largest, std::abs(x));
    for (int64_t i = 0; i < layout.size(); ++i) {
      const float got = natural[slot * layout.size() + i];
      if (got == untouched && expected[i] == 0) continue;  // padding
      ASSERT_NEAR(got, expected[i], 1e-6 * largest) << "slot " << slot << ", place " << i;
    }
    if (layout.from_data) continue;
    for (int layer = 0; layer < layout.depth; ++layer) {
      for (int64_t i = 0; i < layout.attention_size(); ++i) {
        if (!plain.absent(i % layout.nodes)) continue;
        ASSERT_EQ(natural[slot * layout.size() + layout.attention(layer) + i], 0.0f);
      }
    }
  }
  EXPECT_TRUE(std::all_of(natural.begin() + 2 * layout.size(), natural.end(),
                          [](float x) { return x == untouched; }));
}

TEST_P(FoldingTest, PacksForTheTensorCore) {
  for (const Precision precision : {Precision::fp32, Precision::tf32}) {
    make(precision);
    Folding folding(shape_, positions_.data());
    fold(folding);
    const FoldedLayout layout(shape_.spec);
    const bool exact = precision == Precision::fp32;
    const int h = layout.heads;
    const std::vector<float> natural = natural_.download();
    expect_packed(forward_.download(), natural, layout, 1 + h, false, false, exact);
    expect_packed(backward_.download(), natural, layout, 1 + h, false, true, exact);
    if (!layout.from_data) continue;
    expect_packed(score_forward_.download(), natural, layout, h, true, true, exact);
    expect_packed(score_backward_.download(), natural, layout, h, true, false, exact);
  }
}

// With D the gradients of the folded weights, the unfold must give the gradient of
// f(parameters) = <D, fold(parameters)>: checked tensor by tensor along a random direction.
TEST_P(FoldingTest, UnfoldsToTheGradient) {
  make(Precision::fp32);
  Folding folding(shape_, positions_.data());
  fold(folding);
  const FoldedLayout layout(shape_.spec);
  const int64_t size = parameters_[0].values().size();
  std::vector<float> d(slots * layout.size());
  RandomStream random(8, Purpose::initial_values, 2, 0);
  for (float& x : d) x = random.uniform(-1, 1);
  folded_gradients_.upload(d.data(), folded_gradients_.size());
  folding.enqueue_unfold(step_);
  const std::vector<float> got = gradients_.download();

  for (int slot = 0; slot < 2; ++slot) {
    Parameters<double>& parameters = parameters_[slot];
    PlainFold plain(shape_.spec, parameters, real_nodes_[slot]);
    std::vector<double> weights(d.begin() + slot * layout.size(),
                                d.begin() + (slot + 1) * layout.size());
    if (!layout.from_data) {  // rows of absent nodes do not count
      for (int layer = 0; layer < layout.depth; ++layer) {
        for (int64_t i = 0; i < layout.attention_size(); ++i) {
          if (plain.absent(i / layout.nodes % layout.nodes)) {
            weights[layout.attention(layer) + i] = 0;
          }
        }
      }
    }
    const auto f = [&] {
      const std::vector<double> folded = plain();
      double sum = 0;
      for (size_t i = 0; i < folded.size(); ++i) sum += weights[i] * folded[i];
      return sum;
    };
    for (const TensorInfo& tensor : parameters.layout().tensors()) {
      const float* gradient = &got[slot * size + tensor.offset];
      if (!tensor.trained) {
        EXPECT_TRUE(
            std::all_of(gradient, gradient + tensor.size, [](float x) { return x == untouched; }));
        continue;
      }
      const std::span<double> values = parameters.slice(tensor);
      const std::vector<double> original(values.begin(), values.end());
      std::vector<double> direction(tensor.size);
      for (double& x : direction) x = random.normal();
      constexpr double step = 1e-4;
      double difference = 0;
      for (const double sign : {1.0, -1.0}) {
        for (int64_t i = 0; i < tensor.size; ++i) {
          values[i] = original[i] + sign * step * direction[i];
        }
        difference += sign * f() / (2 * step);
      }
      std::copy(original.begin(), original.end(), values.begin());
      double product = 0, norm = 0;
      for (int64_t i = 0; i < tensor.size; ++i) {
        product += gradient[i] * direction[i];
        norm += double{gradient[i]} * gradient[i];
      }
      // One wrong number would show: of 8192 each has about 1 / 90 of the norm.
      EXPECT_NEAR(product, difference, 1e-5 * std::sqrt(norm) + 1e-5)
          << "slot " << slot << ", " << tensor.name;
    }
  }
  EXPECT_TRUE(
      std::all_of(got.begin() + 2 * size, got.end(), [](float x) { return x == untouched; }));
}

INSTANTIATE_TEST_SUITE_P(
    Specs, FoldingTest,
    testing::Values(Case{"positional", "positional", 8, 1, 4, 2, Encoding::one_hot},
                    Case{"one_head", "positional", 4, 0, 2, 1, Encoding::sinusoidal},
                    Case{"eight_heads", "positional", 15, 1, 2, 8, Encoding::random},
                    Case{"direct", "positional-direct", 5, 1, 2, 2, Encoding::one_hot},
                    Case{"binary", "m5", 7, 1, 3, 2, Encoding::binary},
                    Case{"positions_in_input", "m1", 8, 1, 3, 2, Encoding::one_hot},
                    Case{"standard", "standard", 8, 1, 3, 2, Encoding::one_hot},
                    Case{"without_positions", "m2", 8, 1, 3, 2, Encoding::one_hot},
                    Case{"standard_binary", "standard", 3, 1, 2, 1, Encoding::binary},
                    Case{"standard_random", "standard", 6, 2, 2, 2, Encoding::random}),
    [](const auto& which) { return which.param.name; });

TEST(Folding, SupportsWhatFolds) {
  ModelSpec spec = spec_of({"", "positional", 8, 1, 4, 2, Encoding::one_hot});
  EXPECT_TRUE(Folding::supports(spec));
  for (const char* preset : {"m3", "m4", "standard-rope"}) {
    EXPECT_FALSE(Folding::supports(spec_of({"", preset, 8, 1, 4, 2, Encoding::one_hot})));
  }
  EXPECT_FALSE(Folding::supports(spec_of({"", "positional", 8, 1, 4, 2, Encoding::learned})));
  EXPECT_FALSE(Folding::supports(spec_of({"", "positional", 16, 1, 5, 2, Encoding::one_hot})));
  EXPECT_FALSE(Folding::supports(spec_of({"", "positional", 8, 1, 1, 2, Encoding::one_hot})));
  spec.mlp_width = 32;
  EXPECT_FALSE(Folding::supports(spec));
}

// Few and many slots have kernels of their own.
TEST(Folding, AddsGroupsInOrder) {
  constexpr int parts = 80, size = 208;
  for (const int fleet : {3, 6}) {
    std::vector<float> partials(fleet * parts * size);
    std::vector<double> losses(fleet * parts);
    RandomStream random(9, Purpose::initial_values, 3, 0);
    for (float& x : partials) x = random.uniform(-1, 1);
    for (double& x : losses) x = random.uniform(0, 1);
    std::vector<SlotStep> steps(fleet, {16, 8, 0.5f});
    steps[2].samples = 0;
    const DeviceBuffer<SlotStep> device_steps(steps);
    const DeviceBuffer<float> from(partials);
    const DeviceBuffer<double> loss_parts(losses);
    for (const int group : {1, 3}) {
      DeviceBuffer<float> out(std::vector<float>(fleet * size, untouched));
      DeviceBuffer<double> loss_out(std::vector<double>(fleet, untouched));
      enqueue_sum_groups(device_steps.data(), fleet, from.data(), out.data(), parts, group, size,
                         nullptr, {loss_parts.data(), parts, loss_out.data()});
      const std::vector<float> got = out.download();
      const std::vector<double> got_losses = loss_out.download();
      for (int slot = 0; slot < fleet; ++slot) {
        for (int i = 0; i < size; ++i) {
          float expected = 0;
          for (int first = 0; first < parts; first += group) {
            float sum = 0;
            for (int part = first; part < std::min(first + group, parts); ++part) {
              sum += partials[(slot * parts + part) * size + i];
            }
            expected += sum;
          }
          ASSERT_EQ(got[slot * size + i], slot == 2 ? untouched : expected);
        }
        double loss = 0;
        for (int part = 0; part < parts; ++part) loss += losses[slot * parts + part];
        ASSERT_NEAR(got_losses[slot], slot == 2 ? untouched : 0.5 * loss, 1e-12);
      }
    }
  }
}

}  // namespace
}  // namespace posattn::cuda
