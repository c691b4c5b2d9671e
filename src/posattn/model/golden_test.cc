// Initial weights of every preset, to the bit. The hash goes over the names of the tensors too, in
// their order, because the order decides each tensor's random numbers and its place in a file.
#include <gtest/gtest.h>

#include <bit>
#include <vector>

#include "posattn/model/spec/parameters.h"

namespace posattn {
namespace {

// FNV-1a of names and of the bits of the values, lowest byte first.
uint64_t hash_of(const Parameters<float>& parameters) {
  uint64_t hash = 0xcbf29ce484222325u;
  const auto add = [&](uint8_t byte) { hash = (hash ^ byte) * 0x100000001b3u; };
  for (const TensorInfo& tensor : parameters.layout().tensors()) {
    for (const char letter : tensor.name) add(static_cast<uint8_t>(letter));
    for (const float value : parameters.slice(tensor)) {
      const uint32_t bits = std::bit_cast<uint32_t>(value);
      for (int shift = 0; shift < 32; shift += 8) add(static_cast<uint8_t>(bits >> shift));
    }
  }
  return hash;
}

Parameters<float> initial_weights(const ModelSpec& spec) {
  Parameters<float> parameters(resolve(spec));
  initialise(parameters, 3);
  return parameters;
}

TEST(GoldenWeights, OfEveryPreset) {
  const struct {
    const char* preset;
    uint64_t small, paper;  // sizes of our own, and the paper's
    float first, second;    // the paper's sizes, transformer_layers.1.attn.v_proj.weight
  } golden[] = {
      {"positional", 0x6e303b6840291e84, 0xd4613e30edf12231, 0.174724057f, -0.136478007f},
      {"standard", 0xea8a685b733e6109, 0xbf5fc3b81c0b918d, 0.174724057f, -0.136478007f},
      {"positional-direct", 0x5674892b8f1a8163, 0x338ed1b778e5ed3c, -0.185963228f, -0.0341286957f},
      {"standard-rope", 0xea8a685b733e6109, 0xbf5fc3b81c0b918d, 0.174724057f, -0.136478007f},
      {"m0", 0xea8a685b733e6109, 0xbf5fc3b81c0b918d, 0.174724057f, -0.136478007f},
      {"m1", 0xea20c4fe34918323, 0x6c9a3021bf1f4389, 0.174724057f, -0.136478007f},
      {"m2", 0xda6fc6a21adbc042, 0x6c2d45fdff3397b5, 0.174724057f, -0.136478007f},
      {"m3", 0x8153a4d63605f181, 0xf9683d00435fa107, 0.174724057f, -0.136478007f},
      {"m4", 0xda6fc6a21adbc042, 0x6c2d45fdff3397b5, 0.174724057f, -0.136478007f},
      {"m5", 0x6e303b6840291e84, 0xd4613e30edf12231, 0.174724057f, -0.136478007f},
  };
  for (const auto& row : golden) {
    SCOPED_TRACE(row.preset);
    ModelSpec paper;
    apply_preset(row.preset, paper);
    ModelSpec small = paper;
    small.real_nodes = 4;
    small.width = 8;
    small.depth = 2;
    small.mlp_width = 6;
    small.mlp_depth = 3;
    EXPECT_EQ(hash_of(initial_weights(small)), row.small);
    const Parameters<float> weights = initial_weights(paper);
    EXPECT_EQ(hash_of(weights), row.paper);
    EXPECT_EQ(weights["transformer_layers.1.attn.v_proj.weight"][0], row.first);
    EXPECT_EQ(weights["transformer_layers.1.attn.v_proj.weight"][1], row.second);
  }
}

// Normal numbers, whose last bits may differ between C libraries.
TEST(GoldenWeights, OfStoredEncodings) {
  const struct {
    Encoding encoding;
    std::vector<float> values;
  } golden[] = {
      {Encoding::random, {0.208532944f, 0.540154696f, -0.45468232f, 0.0581787713f}},
      {Encoding::learned, {-0.198894009f, -0.353820741f, -0.0643007457f, 0.163754508f}},
  };
  for (const auto& row : golden) {
    ModelSpec spec;
    apply_preset("positional", spec);
    spec.encoding = row.encoding;
    spec.encoding_size = 5;
    const Parameters<float> weights = initial_weights(spec);
    for (size_t i = 0; i < row.values.size(); ++i) {
      EXPECT_NEAR(weights["positions.weight"][i], row.values[i], 1e-7);
    }
  }
}

}  // namespace
}  // namespace posattn
