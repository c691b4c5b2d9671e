#include "posattn/model/text_generator.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "posattn/base/error.h"
#include "posattn/base/random.h"
#include "posattn/model/network.h"

namespace posattn {
namespace {

ModelSpec token_model() {
  ModelSpec spec;
  spec.real_nodes = 14;
  spec.scratch_nodes = 0;
  spec.data_columns = 0;
  spec.vocabulary = spec.output_columns = 9;
  spec.width = 12;
  spec.heads = 3;
  spec.depth = 2;
  spec.mlp_width = 20;
  spec.causal = true;
  spec.loss = Loss::cross_entropy;
  return spec;
}

// Lively enough that continuations differ.
Parameters<float> lively_parameters(const ModelSpec& spec, uint64_t seed) {
  Parameters<float> parameters(spec);
  RandomStream random(seed, Purpose::initial_values, 0, 0);
  for (float& value : parameters.values()) value = static_cast<float>(random.normal() * 0.7);
  return parameters;
}

// Without a memory: the whole text anew for every token.
TokenText continued_plainly(const ModelSpec& spec, const Parameters<float>& parameters,
                            TokenText text, int most, int32_t end) {
  TokenText continuation;
  Network network(spec, {});
  while (static_cast<int>(continuation.size()) < most) {
    TokenText padded = text;
    padded.resize(spec.real_nodes, 0);
    std::vector<float> outputs(spec.real_nodes * spec.output_columns);
    network.forward(parameters, {.samples = 1, .real_nodes = spec.real_nodes, .tokens = padded},
                    outputs);
    const float* last = &outputs[(text.size() - 1) * spec.output_columns];
    const auto best =
        static_cast<int32_t>(std::max_element(last, last + spec.output_columns) - last);
    if (best == end) break;
    continuation.push_back(best);
    text.push_back(best);
    if (static_cast<int>(text.size()) > spec.real_nodes) break;
  }
  return continuation;
}

std::vector<TokenText> random_texts(const ModelSpec& spec, int count, uint64_t seed) {
  RandomStream random(seed, Purpose::test_data, 0, 0);
  std::vector<TokenText> texts(count);
  for (TokenText& text : texts) {
    text.resize(1 + random.below(static_cast<uint32_t>(spec.real_nodes)));
    for (int32_t& token : text) {
      token = static_cast<int32_t>(random.below(static_cast<uint32_t>(spec.vocabulary)));
    }
  }
  return texts;
}

void expect_as_without_memory(const ModelSpec& spec, const char* what) {
  const Parameters<float> parameters = lively_parameters(spec, 5);
  const TextGenerator generator(spec, parameters);
  const std::vector<TokenText> texts = random_texts(spec, 40, 6);
  const std::vector<TokenText> answers =
      generator.continue_texts(texts, {.most_tokens = 6, .end = 3, .threads = 2});
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(answers[i], continued_plainly(spec, parameters, texts[i], 6, 3)) << what << " " << i;
  }
}

TEST(TextGenerator, ContinuesAsWithoutAMemory) {
  ModelSpec spec = token_model();
  expect_as_without_memory(resolve(spec), "positional, concatenated");

  ModelSpec gpt = token_model();
  gpt.attention = AttentionSource::data;
  gpt.encoding = Encoding::learned;
  gpt.positions_added = gpt.split_heads = gpt.tied_output = true;
  gpt.join = Join::add;
  gpt.activation = Activation::gelu_tanh;
  for (const auto when : {Normalisation::before, Normalisation::after, Normalisation::none}) {
    gpt.normalisation = when;
    expect_as_without_memory(resolve(gpt), "GPT");
  }

  spec.attention = AttentionSource::data_and_positions;
  spec.normalisation = Normalisation::after;
  spec.rotation = Rotation::rope;
  spec.encoding = Encoding::binary;
  spec.mlp_depth = 3;
  expect_as_without_memory(resolve(spec), "data and positions, rotated");

  ModelSpec mixed = token_model();
  mixed.kinds = "relative,cosine weighting=hard,data source-scale=node score-bias=direct";
  mixed.depth = 3;
  mixed.loops = "2";
  expect_as_without_memory(resolve(mixed), "kinds that differ, applied twice");
}

TEST(TextGenerator, RefusesModelsThatCannotContinue) {
  const auto refused = [](auto change) {
    ModelSpec spec = token_model();
    change(spec);
    spec = resolve(spec);
    const Parameters<float> parameters(spec);
    EXPECT_THROW(TextGenerator(spec, parameters), Error);
  };
  refused([](ModelSpec& spec) { spec.causal = false; });
  refused([](ModelSpec& spec) { spec.data_columns = 1; });
  refused([](ModelSpec& spec) { spec.loops = "n"; });
  refused([](ModelSpec& spec) { spec.kinds = "scaled"; });
}

TEST(TextGenerator, RefusesTextsThatItCannotRead) {
  const ModelSpec spec = resolve(token_model());
  const Parameters<float> parameters(spec);
  const TextGenerator generator(spec, parameters);
  for (const TokenText& bad : {TokenText{}, TokenText{1, 9}, TokenText{-1}, TokenText(15, 0)}) {
    EXPECT_THROW(generator.continue_texts(std::vector<TokenText>{bad}, {}), Error);
  }
}

}  // namespace
}  // namespace posattn
