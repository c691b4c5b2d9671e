// Models of two streams: what their theorem says, on random weights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "posattn/base/error.h"
#include "posattn/model/blocks/block_network.h"
#include "posattn/model/causal_network.h"
#include "posattn/model/spec/random_spec_test.h"
#include "posattn/model/spec/spec_fields.h"
#include "posattn/model/tiles/tile_network.h"

namespace posattn {
namespace {

using ::testing::HasSubstr;
using testing::random_parameters;
using testing::RandomBatch;

ModelSpec stream_spec(const char* preset, bool fed = false) {
  ModelSpec spec;
  spec.real_nodes = 5;
  spec.data_columns = 2;
  spec.output_columns = 2;
  spec.vocabulary = 4;
  spec.tokens_and_values = true;
  spec.width = 12;
  spec.value_width = 6;
  spec.mlp_width = 10;
  spec.depth = 3;
  apply_preset(preset, spec);
  spec.symbols_read_values = fed;
  return resolve(spec);
}

std::vector<ModelSpec> all_specs() {
  ModelSpec without_norm = stream_spec("two-streams-gated", true);
  without_norm.normalisation = Normalisation::none;
  return {stream_spec("two-streams"), stream_spec("two-streams-gated"),
          stream_spec("two-streams-linear"), stream_spec("two-streams-gated", true),
          resolve(without_norm)};
}

template <class T>
std::vector<T> times(std::span<const T> x, T c) {
  std::vector<T> y(x.begin(), x.end());
  for (T& value : y) value *= c;
  return y;
}

std::vector<double> reference(const ModelSpec& spec, uint64_t seed, ReferenceBatch batch,
                              std::span<const double> inputs) {
  batch.inputs = inputs;
  return reference_forward(spec, to_double(random_parameters(spec, seed)), batch);
}

void expect_near(const std::vector<double>& found, const std::vector<double>& expected) {
  double size = 0;
  for (const double y : expected) size = std::max(size, std::abs(y));
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-13 * size);
}

// f(s, c x) = c f(s, x).
TEST(TwoStreams, OutputsScaleWithTheNumbers) {
  for (const ModelSpec& spec : all_specs()) {
    SCOPED_TRACE(to_json(spec));
    RandomStream random(1, Purpose::test_data, 0, 0);
    const RandomBatch data(spec, 4, 4, random);
    const ReferenceBatch batch = data.reference();
    const auto at_one = reference(spec, 3, batch, batch.inputs);
    expect_near(reference(spec, 3, batch, times(batch.inputs, 3.0)), times<double>(at_one, 3.0));
    // In float to the bit for powers of 4: roots of mean squares are then exact multiples.
    Network network(spec);
    const Parameters<float> parameters = random_parameters(spec, 3);
    std::vector<float> one(at_one.size()), more(at_one.size());
    network.forward(parameters, data.batch(), one);
    for (const float c : {4.0f, 1024.0f, 1 / 4096.0f}) {
      const std::vector<float> inputs = times<float>(data.inputs, c);
      Batch large = data.batch();
      large.inputs = inputs;
      network.forward(parameters, large, more);
      EXPECT_EQ(more, times<float>(one, c)) << c;
    }
  }
}

// f(s, x + y) = f(s, x) + f(s, y) without ReLUs in the stream; with them not.
TEST(TwoStreams, WithoutAnMlpOfValuesOutputsAreLinear) {
  for (const bool linear : {true, false}) {
    const ModelSpec spec = stream_spec(linear ? "two-streams-linear" : "two-streams");
    RandomStream random(2, Purpose::test_data, 0, 0);
    const RandomBatch data(spec, 4, 5, random);
    const ReferenceBatch batch = data.reference();
    std::vector<double> other(batch.inputs.size()), sum(batch.inputs.size());
    for (size_t i = 0; i < sum.size(); ++i) {
      other[i] = random.uniform(-2, 2);
      sum[i] = batch.inputs[i] + other[i];
    }
    std::vector<double> apart = reference(spec, 4, batch, batch.inputs);
    const auto second = reference(spec, 4, batch, other), both = reference(spec, 4, batch, sum);
    for (size_t i = 0; i < apart.size(); ++i) apart[i] += second[i];
    if (linear) {
      expect_near(both, apart);
    } else {
      EXPECT_GT(std::abs(both[0] - apart[0]), 1e-6);
    }
  }
}

TEST(TwoStreams, ZeroGivesZeroAndFiniteGradients) {
  for (const ModelSpec& spec : all_specs()) {
    RandomStream random(3, Purpose::test_data, 0, 0);
    RandomBatch data(spec, 3, 5, random);
    std::ranges::fill(data.inputs, 0.0f);
    const Parameters<float> parameters = random_parameters(spec, 5);
    Network network(spec);
    std::vector<float> outputs(data.targets.size());
    network.forward(parameters, data.batch(), outputs);
    EXPECT_THAT(outputs, ::testing::Each(0.0f));
    Parameters<float> gradient(spec);
    network.gradient(parameters, data.batch(), {}, gradient);
    EXPECT_TRUE(std::ranges::all_of(gradient.values(), [](float g) { return std::isfinite(g); }));
  }
}

// Nothing is trained that cannot learn: Adam would divide 0 by 0.
TEST(TwoStreams, EveryParameterHasAGradient) {
  std::vector<ModelSpec> specs = all_specs();
  for (const bool joined : {false, true}) {
    for (const bool fed : {false, true}) {
      if (!joined && !fed) continue;
      ModelSpec classes = stream_spec("two-streams");
      classes.scores_read_values = joined;
      classes.symbols_read_values = fed;
      classes.loss = Loss::cross_entropy;
      specs.push_back(resolve(classes));
    }
  }
  for (const ModelSpec& spec : specs) {
    SCOPED_TRACE(to_json(spec));
    RandomStream random(4, Purpose::test_data, 0, 0);
    const RandomBatch data(spec, 8, 5, random);
    const Parameters<double> parameters = to_double(random_parameters(spec, 6));
    Parameters<double> gradient(parameters.shared_layout());
    reference_gradient(spec, parameters, data.reference(), {}, gradient);
    for (const TensorInfo& tensor : gradient.layout().tensors()) {
      double largest = 0;
      for (const double g : gradient.slice(tensor)) largest = std::max(largest, std::abs(g));
      EXPECT_TRUE(!tensor.trained || largest > 1e-9) << tensor.name;
    }
  }
}

TEST(TwoStreams, GatesBeginOpen) {
  ModelSpec gated = stream_spec("two-streams"), plain = gated;
  gated.value_gates = ValueGates::mix_and_hidden;
  gated = resolve(gated);
  Parameters<float> with(gated), without(plain);
  initialise(with, 1);
  // Gates need the symbols that the last layer mixes; the others are shared by name.
  for (const TensorInfo& tensor : without.layout().tensors()) {
    std::ranges::copy(with[tensor.name], without.slice(tensor).begin());
  }
  RandomStream random(5, Purpose::test_data, 0, 0);
  const RandomBatch data(gated, 3, 5, random);
  std::vector<float> of_gated(data.targets.size()), of_plain(data.targets.size());
  Network(gated).forward(with, data.batch(), of_gated);
  Network(plain).forward(without, data.batch(), of_plain);
  EXPECT_EQ(of_gated, of_plain);
}

TEST(TwoStreams, HaveTheSameBitsForAnyThreads) {
  for (const ModelSpec& spec : all_specs()) {
    RandomStream random(6, Purpose::test_data, 0, 0);
    const RandomBatch data(spec, 40, 5, random);
    const Parameters<float> parameters = random_parameters(spec, 7);
    Parameters<float> one(spec), three(spec);
    const double loss = Network(spec, {.threads = 1}).gradient(parameters, data.batch(), {}, one);
    EXPECT_EQ(Network(spec, {.threads = 3}).gradient(parameters, data.batch(), {}, three), loss);
    EXPECT_TRUE(std::ranges::equal(one.values(), three.values()));
  }
}

// Symbols that are positions alone are made once for all samples of a tile: the same outputs, and
// the same gradients, as sample by sample.
TEST(TwoStreams, SymbolsOfPositionsAreMadeOnce) {
  for (const char* preset : {"two-streams", "two-streams-gated", "two-streams-linear"}) {
    SCOPED_TRACE(preset);
    ModelSpec spec;
    spec.real_nodes = 5;
    spec.data_columns = spec.output_columns = 2;
    spec.width = 12;
    spec.value_width = 6;
    spec.mlp_width = 10;
    spec.depth = 3;
    apply_preset(preset, spec);
    spec.scores_read_values = false;
    spec.positions_in_input = true;
    spec = resolve(spec);
    RandomStream random(9, Purpose::test_data, 0, 0);
    constexpr int samples = 7;
    const RandomBatch data(spec, samples, 4, random);
    const ReferenceBatch batch = data.reference();
    const Parameters<double> parameters = to_double(random_parameters(spec, 11));
    Parameters<double> expected(spec), found(spec);
    const double loss = reference_gradient(spec, parameters, batch, {}, expected);
    BlockNetwork<double> network(spec);
    network.prepare(parameters, batch.real_nodes);
    BlockTape<double> tape;
    network.forward(batch, 0, samples, tape);
    EXPECT_EQ(tape.layers[1].x.size(), network.nodes() * spec.width);
    std::vector<double> sums(network.sums_size());
    EXPECT_NEAR(network.backward(batch, 0, samples, {}, loss_scale(spec, batch, {}), tape, sums),
                loss, 1e-13 * loss);
    network.finish(sums, found);
    double size = 0;
    for (const double g : expected.values()) size = std::max(size, std::abs(g));
    for (size_t i = 0; i < found.values().size(); ++i) {
      EXPECT_NEAR(found.values()[i], expected.values()[i], 1e-13 * size);
    }
  }
}

// A node that holds a token in place of a number has no value.
TEST(TwoStreams, NodesOfTokensMayHaveNoNumber) {
  ModelSpec spec = stream_spec("two-streams");
  spec.tokens_and_values = false;
  RandomStream random(7, Purpose::test_data, 0, 0);
  RandomBatch data(spec, 2, 5, random);
  data.tokens.assign(data.tokens.size(), -1);
  data.tokens[0] = 1;
  const ReferenceBatch batch = data.reference();
  std::vector<double> other(batch.inputs.begin(), batch.inputs.end());
  const auto expected = reference(spec, 8, batch, other);
  other[0] += 1;  // of the node with a token
  EXPECT_EQ(reference(spec, 8, batch, other), expected);
  other[2] += 1;
  EXPECT_NE(reference(spec, 8, batch, other), expected);
}

// Two streams without gates and joins are one stream of both widths whose tensors have fixed zeros:
// with symbols in the first columns and values behind them,
//   [s | v] + A [s | v] diag(W_V, W'_V) diag(W_O, W'_O) + (b | 0),  A from the first columns alone,
// and an MLP of two blocks. Without LayerNorm, which would see the values. A head mixes columns of
// symbols, then columns of values, so W_V has its rows and W_O its columns in that order.
class StructuralZeros {
 public:
  StructuralZeros(const ModelSpec& two, const Parameters<double>& of_two)
      : two_(two), one_(one_stream(two)), from_(of_two), to_(one_) {
    const int s = two.width, v = two.value_width, sm = two.mlp_width, vm = two.value_mlp_width;
    const int all = s + v, positions = two.encoding_size;
    copy("tokens.weight", "tokens.weight", s, all, 0, 0);
    copy("encoding.weight", "encoding.weight", positions, two.data_columns + positions, 0,
         two.data_columns);
    copy("encoding.bias", "encoding.bias", 1, 1, 0, 0);
    copy("values.encoder.weight", "encoding.weight", two.data_columns, two.data_columns + positions,
         s, 0);
    for (int layer = 0; layer < two.depth; ++layer) {
      const std::string at = "transformer_layers." + std::to_string(layer) + ".";
      copy_scores(at + "attn.qk_proj.");
      const bool last = layer == two.depth - 1;  // its symbols answer nothing
      if (!last) {
        copy(at + "attn.v_proj.weight", at + "attn.v_proj.weight", s, all, 0, 0, &in_head_s_);
        copy(at + "attn.v_proj.bias", at + "attn.v_proj.bias", 1, 1, 0, 0, &in_head_s_);
        copy(at + "attn.o_proj.weight", at + "attn.o_proj.weight", s, all, 0, 0, nullptr,
             &in_head_s_);
        copy(at + "attn.o_proj.bias", at + "attn.o_proj.bias", 1, 1, 0, 0);
        copy(at + "mlp.mlp.0.weight", at + "mlp.mlp.0.weight", s, all, 0, 0);
        copy(at + "mlp.mlp.0.bias", at + "mlp.mlp.0.bias", 1, 1, 0, 0);
        copy(at + "mlp.mlp.2.weight", at + "mlp.mlp.2.weight", sm, sm + vm, 0, 0);
        copy(at + "mlp.mlp.2.bias", at + "mlp.mlp.2.bias", 1, 1, 0, 0);
      }
      copy(at + "values.v_proj.weight", at + "attn.v_proj.weight", v, all, 0, s, &in_head_v_);
      copy(at + "values.o_proj.weight", at + "attn.o_proj.weight", v, all, s, 0, nullptr,
           &in_head_v_);
      if (vm == 0) continue;
      copy(at + "values.mlp.0.weight", at + "mlp.mlp.0.weight", v, all, sm, s);
      copy(at + "values.mlp.2.weight", at + "mlp.mlp.2.weight", vm, sm + vm, s, sm);
    }
    copy("values.head.weight", "decoding.weight", v, all, 0, s);
  }
  const ModelSpec& spec() const { return one_; }
  const Parameters<double>& parameters() const { return to_; }

 private:
  using Places = std::function<int(int)>;

  static ModelSpec one_stream(ModelSpec spec) {
    spec.width += spec.value_width;
    spec.mlp_width += spec.value_mlp_width;
    spec.value_width = spec.value_mlp_width = 0;
    return resolve(spec);
  }

  // A block of rows of `in` numbers goes to row `row`, column `column` of one with rows of `out`,
  // or where the places of its rows and columns say.
  void copy(const std::string& from, const std::string& to, int in, int out, int row, int column,
            const Places* rows = nullptr, const Places* columns = nullptr) {
    const auto source = from_[from];
    const auto target = to_[to];
    for (int i = 0; i < static_cast<int>(source.size()) / in; ++i) {
      for (int j = 0; j < in; ++j) {
        const int r = rows != nullptr ? (*rows)(i) : row + i;
        const int c = column + (columns != nullptr ? (*columns)(j) : j);
        target[r * out + c] = source[i * in + j];
      }
    }
  }

  // Scores are divided by the root of the keys' size, which is larger in one stream.
  void copy_scores(const std::string& map) {
    const int small = two_.key_size(), large = one_.key_size();
    const double factor = std::sqrt(1.0 * large / small);
    for (int row = 0; row < 2 * two_.heads * small; ++row) {
      const int part = row / small, to = part * large + row % small;  // queries, keys by head
      const double times = part % 2 == 0 ? factor : 1;
      to_[map + "bias"][to] = times * from_[map + "bias"][row];
      for (int c = 0; c < two_.width; ++c) {
        to_[map + "weight"][to * one_.width + c] =
            times * from_[map + "weight"][row * two_.width + c];
      }
    }
  }

  const ModelSpec two_, one_;
  const Parameters<double> from_;
  Parameters<double> to_;
  const int head_s_ = two_.width / two_.heads, head_v_ = two_.value_width / two_.heads;
  const Places in_head_s_ = [this](int i) {
    return i / head_s_ * (head_s_ + head_v_) + i % head_s_;
  };
  const Places in_head_v_ = [this](int i) {
    return i / head_v_ * (head_s_ + head_v_) + head_s_ + i % head_v_;
  };
};

TEST(TwoStreams, AreOneStreamWithStructuralZeros) {
  for (const char* preset : {"two-streams", "two-streams-linear"}) {
    ModelSpec spec = stream_spec(preset);
    spec.normalisation = Normalisation::none;
    const Parameters<double> parameters = to_double(random_parameters(spec, 9));
    const StructuralZeros one(spec, parameters);
    RandomStream random(8, Purpose::test_data, 0, 0);
    const RandomBatch data(spec, 6, 5, random);
    const ReferenceBatch batch = data.reference();
    expect_near(reference_forward(one.spec(), one.parameters(), batch),
                reference_forward(spec, parameters, batch));
  }
}

TEST(TwoStreams, OtherEnginesRefuse) {
  const ModelSpec spec = stream_spec("two-streams");
  for (const Path path : {Path::automatic, Path::plain, Path::folded}) {
    EXPECT_FALSE(engine::TileNetwork::supports(spec, path));
  }
  EXPECT_EQ(CausalNetwork::refusal(spec), "has two streams");
}

std::string problem_of(const std::function<void(ModelSpec&)>& change) {
  ModelSpec spec = stream_spec("two-streams");
  change(spec);
  try {
    plan_of(resolve(spec));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::configuration);
    return error.problem();
  }
  return "none";
}

TEST(TwoStreams, ImpossibleCombinationsAreRefused) {
  EXPECT_EQ(problem_of([](ModelSpec&) {}), "none");
  EXPECT_THAT(problem_of([](ModelSpec& s) { s.value_width = 7; }), HasSubstr("2 heads"));
  EXPECT_THAT(problem_of([](ModelSpec& s) { s.join = Join::concatenate; }),
              HasSubstr("'concatenate'"));
  EXPECT_THAT(problem_of([](ModelSpec& s) { s.normalisation = Normalisation::after; }),
              HasSubstr("normalisation 'after'"));
  EXPECT_THAT(problem_of([](ModelSpec& s) { s.attention = AttentionSource::positions; }),
              HasSubstr("attention from positions"));
  EXPECT_THAT(problem_of([](ModelSpec& s) { s.source_scale = SourceScale::node; }),
              HasSubstr("source scale 'node'"));
  EXPECT_THAT(problem_of([](ModelSpec& s) { s.weighting = Weighting::max_plus; }),
              HasSubstr("values added to scores"));
  EXPECT_THAT(problem_of([](ModelSpec& s) { s.loss = Loss::cross_entropy; }),
              HasSubstr("never see the values"));
  EXPECT_THAT(problem_of([](ModelSpec& s) {
                s.value_mlp_width = 0;
                s.value_gates = ValueGates::mix_and_hidden;
              }),
              HasSubstr("no MLP of values"));
  EXPECT_THAT(problem_of([](ModelSpec& s) {
                s.vocabulary = 0;
                s.tokens_and_values = s.positions_in_input = false;
              }),
              HasSubstr("neither tokens nor positions"));
  EXPECT_THAT(problem_of([](ModelSpec& s) { s.value_width = 0; }), HasSubstr("one stream"));
  ModelSpec spec;
  spec.value_width = 8;
  EXPECT_THROW(apply_preset("standard", spec), Error);
  spec.value_mlp_width = 8;
  EXPECT_THROW(apply_preset("two-streams-linear", spec), Error);
}

TEST(TwoStreams, HaveNames) {
  for (const char* name : {"two-streams", "two-streams-gated", "two-streams-linear"}) {
    const ModelSpec spec = stream_spec(name);
    EXPECT_EQ(preset_name(spec), name);
    EXPECT_EQ(spec_from_json(to_json(spec)), spec);
  }
}

}  // namespace
}  // namespace posattn
