#include "posattn/model/file/gpt2_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <functional>

#include "posattn/base/error.h"
#include "posattn/base/temporary_folder_test.h"
#include "posattn/model/file/small_gpt2_test.h"
#include "posattn/model/spec/tensor_names.h"

namespace posattn {
namespace {

using testing::HasSubstr;

Parameters<float> load(const std::vector<std::byte>& bytes, int nodes = small_gpt2.positions) {
  return gpt2_parameters(small_gpt2, gpt2_spec(small_gpt2, nodes), parse_safetensors(bytes),
                         "model.safetensors");
}

TEST(Gpt2Weights, EveryNumberHasItsPlace) {
  const FloatTensors tensors = small_gpt2_tensors(1);
  const Parameters<float> parameters = load(file_of(tensors));
  // Row 5 of queries and keys: head 0 (of 4 and 4), its key 1; key 1 of head 0 is column 8 + 1.
  const std::span<const float> query_key =
      parameters[names::weight(names::of_layer(1, names::query_key))];
  const FloatTensor& theirs = tensors.at("h.1.attn.c_attn.weight");  // [8, 24]
  EXPECT_EQ(query_key[5 * 8 + 3], theirs.values[3 * 24 + 9]);
  // Row 10: head 1, its query 2: column 4 + 2.
  EXPECT_EQ(query_key[10 * 8 + 7], theirs.values[7 * 24 + 6]);
  EXPECT_EQ(parameters[names::bias(names::of_layer(0, names::value))][6],
            tensors.at("h.0.attn.c_attn.bias").values[16 + 6]);
}

TEST(Gpt2Weights, BackIsTheSame) {
  const FloatTensors tensors = small_gpt2_tensors(2);
  const Parameters<float> parameters = load(file_of(tensors));
  const auto back = gpt2_tensors(gpt2_spec(small_gpt2, small_gpt2.positions), parameters);
  ASSERT_EQ(back.size(), tensors.size());
  for (const auto& [name, tensor] : back) {
    EXPECT_EQ(tensor.shape, tensors.at(name).shape);
    EXPECT_TRUE(std::ranges::equal(tensor.values, tensors.at(name).values)) << name;
  }
}

TEST(Gpt2Weights, ShorterTextsUseTheFirstPositions) {
  const FloatTensors tensors = small_gpt2_tensors(3);
  const Parameters<float> parameters = load(file_of(tensors), 3);
  const std::span<const float> positions = parameters[names::positions];
  ASSERT_EQ(positions.size(), 3U * 8);
  EXPECT_TRUE(
      std::equal(positions.begin(), positions.end(), tensors.at("wpe.weight").values.begin()));
}

TEST(Gpt2Weights, PrefixMasksAndATiedOutputAreAccepted) {
  FloatTensors tensors;
  for (const auto& [name, tensor] : small_gpt2_tensors(4)) tensors["transformer." + name] = tensor;
  tensors["transformer.h.0.attn.bias"] = {{1, 1, 2, 2}, {1, 0, 1, 1}};
  tensors["transformer.h.1.attn.masked_bias"] = {{}, {-10000}};
  tensors["lm_head.weight"] = tensors["transformer.wte.weight"];
  EXPECT_TRUE(std::ranges::equal(load(file_of(tensors)).values(),
                                 load(file_of(small_gpt2_tensors(4))).values()));
  tensors["lm_head.weight"].values[0] += 1;
  EXPECT_THROW(load(file_of(tensors)), Error);
}

TEST(Gpt2Weights, NumbersOf16Bits) {
  const FloatTensors tensors = small_gpt2_tensors(5);
  std::map<std::string, std::vector<uint16_t>> halves;
  std::vector<TensorView> views;
  FloatTensors rounded = tensors;
  for (const auto& [name, tensor] : tensors) {
    for (size_t i = 0; i < tensor.values.size(); ++i) {
      const uint32_t bits = std::bit_cast<uint32_t>(tensor.values[i]) & 0xffff0000U;
      halves[name].push_back(static_cast<uint16_t>(bits >> 16));
      rounded[name].values[i] = std::bit_cast<float>(bits);
    }
    views.push_back({name, DataType::bf16, tensor.shape, std::as_bytes(std::span(halves[name]))});
  }
  EXPECT_TRUE(std::ranges::equal(load(write_safetensors({}, views)).values(),
                                 load(file_of(rounded)).values()));
}

TEST(Gpt2Weights, RefusesWhatIsNotThisModel) {
  const struct {
    const char* problem;
    std::function<void(FloatTensors&)> change;
  } rows[] = {
      {"tensor 'h.1.ln_2.bias' is missing", [](auto& t) { t.erase("h.1.ln_2.bias"); }},
      {"tensor 'wte.weight' has shape [11, 7]",
       [](auto& t) {
         t["wte.weight"] = {{11, 7}, std::vector<float>(77)};
       }},
      {"tensor 'h.0.attn.c_attn.weight' has shape [24, 8]",
       [](auto& t) {
         t["h.0.attn.c_attn.weight"].shape = {24, 8};
       }},
      {"tensor 'h.2.ln_1.bias' does not belong",
       [](auto& t) {
         t["h.2.ln_1.bias"] = {{8}, std::vector<float>(8)};
       }},
      {"stands there twice", [](auto& t) { t["transformer.ln_f.bias"] = t["ln_f.bias"]; }},
      {"not finite", [](auto& t) { t["ln_f.bias"].values[3] = NAN; }},
  };
  for (const auto& row : rows) {
    FloatTensors tensors = small_gpt2_tensors(6);
    row.change(tensors);
    try {
      load(file_of(tensors));
      ADD_FAILURE() << row.problem;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::data);
      EXPECT_THAT(error.problem(), HasSubstr(row.problem));
    }
  }
  // Another type.
  const std::vector<int32_t> whole(8);
  std::vector<TensorView> views;
  FloatTensors tensors = small_gpt2_tensors(6);
  tensors.erase("ln_f.bias");
  for (const auto& [name, tensor] : tensors) {
    views.push_back(make_view<float>(name, tensor.shape, tensor.values));
  }
  views.push_back(make_view<int32_t>("ln_f.bias", {8}, whole));
  EXPECT_THROW(load(write_safetensors({}, views)), Error);
}

TEST(Gpt2Weights, ReadsAFolder) {
  const TemporaryFolder folder;
  EXPECT_FALSE(is_gpt2_folder(folder.path()));
  write_file(folder.path() / "config.json", small_gpt2_config);
  write_file(folder.path() / "model.safetensors", file_of(small_gpt2_tensors(7)));
  EXPECT_TRUE(is_gpt2_folder(folder.path()));
  const ModelSpec spec = gpt2_spec(read_gpt2_config(folder.path()), 4);
  EXPECT_EQ(read_gpt2_parameters(folder.path(), spec)["norm.bias"][0],
            small_gpt2_tensors(7).at("ln_f.bias").values[0]);
}

}  // namespace
}  // namespace posattn
