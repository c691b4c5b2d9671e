#include "posattn/model/file/gpt2_config.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "posattn/base/error.h"
#include "posattn/base/json_fields.h"

namespace posattn {
namespace {

using nlohmann::json;

class Reader {
 public:
  Reader(const json& object, const std::string& where) : object_(object), where_(where) {}

  int size(const char* key) const {
    if (!object_.contains(key)) throw bad(fmt::format("'{}' is missing", key), "a size");
    const json& value = object_[key];
    constexpr int64_t most = 1 << 20;
    if (!value.is_number_unsigned() || value.get<uint64_t>() < 1 || value.get<uint64_t>() > most) {
      throw bad(fmt::format("{} = {}", key, value.dump()), fmt::format("1 to {}", most));
    }
    return value.get<int>();
  }
  bool has(const char* key) const { return object_.contains(key) && !object_[key].is_null(); }

  // Absent, or this.
  void expect(const char* key, const json& value) const {
    if (!object_.contains(key) || object_[key] == value) return;
    throw bad(fmt::format("{} = {}", key, object_[key].dump()), value.dump());
  }

  Error bad(const std::string& what, std::string expected) const {
    return Error(ExitCode::data, fmt::format("{}: {}", where_, what), std::move(expected),
                 "only GPT-2 as published can be read (gpt2, gpt2-medium, gpt2-large, gpt2-xl)");
  }

 private:
  const json& object_;
  const std::string& where_;
};

}  // namespace

Gpt2Config read_gpt2_config(std::string_view text, const std::string& where) {
  const json object = parse_strict_json(text, where);
  const Reader reader(object, where);
  if (!object.is_object()) throw reader.bad("not an object", "{\"n_embd\": 768, ...}");
  reader.expect("model_type", "gpt2");
  reader.expect("activation_function", "gelu_new");
  reader.expect("layer_norm_epsilon", 1e-5);
  reader.expect("scale_attn_weights", true);
  reader.expect("scale_attn_by_inverse_layer_idx", false);
  reader.expect("add_cross_attention", false);
  reader.expect("tie_word_embeddings", true);
  Gpt2Config config;
  config.width = reader.size("n_embd");
  config.depth = reader.size("n_layer");
  config.heads = reader.size("n_head");
  config.positions = reader.size("n_positions");
  config.vocabulary = reader.size("vocab_size");
  config.mlp_width = reader.has("n_inner") ? reader.size("n_inner") : 4 * config.width;
  if (config.width % config.heads != 0) {
    throw reader.bad(fmt::format("n_embd = {} with n_head = {}", config.width, config.heads),
                     "heads that divide the width");
  }
  try {
    gpt2_spec(config, 1);
  } catch (const Error& error) {  // sizes that no model may have
    throw reader.bad(error.problem(), error.expected());
  }
  return config;
}

ModelSpec gpt2_spec(const Gpt2Config& config, int nodes) {
  if (nodes > config.positions) {
    throw Error(ExitCode::configuration, fmt::format("a text of {} tokens", nodes),
                fmt::format("at most {}: the model's table of positions has no more rows",
                            config.positions));
  }
  ModelSpec spec;
  spec.real_nodes = nodes;
  spec.scratch_nodes = 0;
  spec.data_columns = 0;
  spec.output_columns = spec.vocabulary = config.vocabulary;
  spec.attention = AttentionSource::data;
  spec.encoding = Encoding::learned;
  spec.positions_added = true;
  spec.width = config.width;
  spec.heads = config.heads;
  spec.depth = config.depth;
  spec.mlp_width = config.mlp_width;
  spec.causal = true;
  spec.split_heads = true;
  spec.join = Join::add;
  spec.normalisation = Normalisation::before;
  spec.activation = Activation::gelu_tanh;
  spec.tied_output = true;
  spec.loss = Loss::cross_entropy;
  return resolve(spec);
}

std::string gpt2_name(const ModelSpec& spec) {
  const struct {
    int depth, width;
    const char* name;
  } published[] = {{12, 768, "gpt2"},
                   {24, 1024, "gpt2-medium"},
                   {36, 1280, "gpt2-large"},
                   {48, 1600, "gpt2-xl"}};
  for (const auto& size : published) {
    if (spec.depth == size.depth && spec.width == size.width) return size.name;
  }
  return fmt::format("gpt2-{}x{}", spec.depth, spec.width);
}

}  // namespace posattn
