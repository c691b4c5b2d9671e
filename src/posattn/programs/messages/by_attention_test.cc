// Messages that attention from the data carries. Random programs of all routings are tested by
// route_messages_test.cc and random_messages_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "posattn/base/error.h"
#include "posattn/base/random.h"
#include "posattn/evaluation/predict.h"
#include "posattn/model/network.h"
#include "posattn/programs/checking/verify.h"
#include "posattn/programs/language/language.h"
#include "posattn/programs/lowering/compile.h"

namespace posattn {
namespace {

using ::testing::HasSubstr;

Model by_attention(const StaticProgram& program) {
  return compile(program, {.routing = Routing::attention});
}

int layers_of(const char* name, int n, Routing routing) {
  const RoutedProgram routed = route_messages(library_program(name, n), routing);
  return static_cast<int>(plan_network(routed.program).layers.size());
}

TEST(ByAttention, ListRankingIsItsDefinition) {
  const int n = 30;
  const Model model = by_attention(library_program("list-ranking", n));
  RandomStream random(1, Purpose::test_data, 0, 0);
  const std::vector<int> order = random_order(n, random);
  std::vector<float> next(n, -1), rank(n);
  for (int k = 0; k < n; ++k) {
    if (k + 1 < n) next[order[k]] = static_cast<float>(order[k + 1]);
    rank[order[k]] = static_cast<float>(n - 1 - k);
  }
  EXPECT_EQ(predict_rows(model, next, 1), rank);
}

TEST(ByAttention, KHopIsItsDefinition) {
  const int n = 24;
  const Model model = by_attention(library_program("k-hop", n, {{"K", 7}, {"q", 3}}));
  for (uint32_t hops = 0; hops <= 7; ++hops) {
    RandomStream random(2, Purpose::test_data, 0, hops);
    std::vector<int> letters(n);
    for (int& letter : letters) letter = 1 + static_cast<int>(random.below(3));
    std::vector<float> input, expected;
    for (int i = 0; i < n; ++i) {
      input.push_back(static_cast<float>(letters[i]));
      input.push_back(static_cast<float>(hops));
      int place = i;  // one hop leads to the place after the last one before with the same letter
      for (uint32_t hop = 0; hop < hops && place >= 0; ++hop) {
        int before = place - 1;
        while (before >= 0 && letters[before] != letters[place]) --before;
        place = before < 0 ? -1 : before + 1;
      }
      expected.push_back(place < 0 ? 0.0F : static_cast<float>(letters[place]));
    }
    EXPECT_EQ(predict_rows(model, input, 1), expected) << hops;
  }
}

TEST(ByAttention, IsExactUpToTheLargestSize) {
  const int n = 256;
  const StaticProgram program = compile_text(
      "word d : int[-300..600] = input\nword x : real = input\nsend y = x to d\noutput y\n",
      "messages.par", n);
  const Model model = by_attention(program);
  RandomStream random(3, Purpose::test_data, 0, 0);
  const std::vector<int> order = random_order(n, random);
  std::vector<float> input, expected(n);
  for (int j = 0; j < n; ++j) {
    constexpr float nowhere[] = {-300, -1, 256, 257, 600};
    const bool sends = random.below(4) > 0;
    const float x = random.uniform(-1e6F, 1e6F);
    input.push_back(sends ? static_cast<float>(order[j]) : nowhere[j % 5]);
    input.push_back(x);
    if (sends) expected[order[j]] = x;
  }
  EXPECT_EQ(predict_rows(model, input, 1), expected);
}

TEST(ByAttention, TheScratchNodeReadsItself) {
  const int n = 9;
  const Model model = by_attention(library_program("scatter", n));
  std::vector<float> input;
  for (int j = 0; j < n; ++j) input.insert(input.end(), {static_cast<float>((j + 4) % n), 1.0F});
  Network network(model.spec);
  const std::vector<float> attention =
      network.attention(model.parameters, {.inputs = input, .samples = 1, .real_nodes = n});
  ASSERT_EQ(model.spec.depth, 2);
  for (int i = 0; i <= n; ++i) {  // of the layer that carries the messages
    for (int j = 0; j <= n; ++j) {
      const int sender = i == n ? n : (i + n - 4) % n;
      EXPECT_EQ(attention[((n + 1) + i) * (n + 1) + j], j == sender ? 1 : 0) << i << ' ' << j;
    }
  }
}

TEST(ByAttention, LayersGrowWithRoundsAlone) {
  EXPECT_EQ(layers_of("scatter", 8, Routing::attention), 2);
  EXPECT_EQ(layers_of("scatter", 128, Routing::attention), 2);
  EXPECT_LE(layers_of("gather", 128, Routing::attention), 4);
  EXPECT_LT(layers_of("list-ranking", 100, Routing::attention), 30);
  EXPECT_GT(layers_of("list-ranking", 100, Routing::sort), 300);
}

TEST(ByAttention, ModelsAreVerifiedAgain) {
  const StaticProgram program = library_program("radix-sort", 6);
  Model model = by_attention(program);
  VerifyRequest request{.model = &model, .program = &program, .routing = Routing::attention};
  request.samples = 50;
  EXPECT_TRUE(verify(request).holds());
  for (int layer = 0; layer < model.spec.depth; ++layer) {
    if (!model.spec.of_layer(layer).reads_data()) continue;
    for (float& number :
         model.parameters["transformer_layers." + std::to_string(layer) + ".attn.qk_proj.weight"]) {
      number = -number;
    }
    break;
  }
  EXPECT_FALSE(verify(request).holds());
}

TEST(ByAttention, RefusesWhatScoresCannotTellApart) {
  try {
    route_messages(library_program("scatter", 257), Routing::attention);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::configuration);
    EXPECT_THAT(error.what(), HasSubstr("at most 256"));
  }
}

}  // namespace
}  // namespace posattn
