#include "posattn/model/file/gpt2_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "posattn/base/error.h"
#include "posattn/model/file/small_gpt2_test.h"

namespace posattn {
namespace {

using testing::HasSubstr;

std::string changed(const std::string& from, const std::string& to) {
  std::string text(small_gpt2_config);
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Gpt2Config, Sizes) {
  EXPECT_EQ(read_gpt2_config(small_gpt2_config, "config.json"), small_gpt2);
  EXPECT_EQ(read_gpt2_config(changed("null", "20"), "config.json").mlp_width, 20);
}

TEST(Gpt2Config, TheModelThatItMeans) {
  const ModelSpec spec = gpt2_spec(small_gpt2, 5);
  EXPECT_EQ(spec.nodes(), 5);
  EXPECT_EQ(spec.key_size(), 4);
  EXPECT_EQ(preset_name(spec), "standard");
  EXPECT_NO_THROW(gpt2_spec(small_gpt2, 12));
  EXPECT_THROW(gpt2_spec(small_gpt2, 13), Error);  // longer than the table of positions
  EXPECT_EQ(gpt2_name(spec), "gpt2-2x8");
  EXPECT_EQ(gpt2_name(gpt2_spec(Gpt2Config{}, 5)), "gpt2");
}

TEST(Gpt2Config, RefusesOtherModels) {
  const struct {
    std::string text;
    const char* problem;
  } rows[] = {
      {"[]", "not an object"},
      {"{", "not valid JSON"},
      {changed("\"gpt2\"", "\"llama\""), "model_type = \"llama\""},
      {changed("gelu_new", "relu"), "activation_function = \"relu\""},
      {changed("1e-05", "1e-06"), "layer_norm_epsilon"},
      {changed("\"n_embd\": 8", "\"n_embd\": 9"), "n_embd = 9 with n_head = 2"},
      {changed("\"n_embd\": 8", "\"n_embd\": -8"), "n_embd = -8"},
      {changed("\"n_layer\": 2", "\"n_layer\": \"2\""), "n_layer = \"2\""},
      {changed("\"n_layer\"", "\"layers\""), "'n_layer' is missing"},
      {changed("\"n_layer\": 2", "\"n_layer\": 1000000"), "depth"},
  };
  for (const auto& row : rows) {
    try {
      read_gpt2_config(row.text, "config.json");
      ADD_FAILURE() << row.problem;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::data);
      EXPECT_THAT(error.problem(), HasSubstr(row.problem));
      EXPECT_THAT(error.problem(), HasSubstr("config.json"));
    }
  }
}

}  // namespace
}  // namespace posattn
