#include "posattn/model/text_generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "posattn/base/error.h"
#include "posattn/base/parallel.h"
#include "posattn/kernels/generic/normalisation.h"
#include "posattn/kernels/generic/product.h"
#include "posattn/kernels/generic/rows.h"
#include "posattn/model/blocks/activation.h"

namespace posattn {
namespace {

// Texts that one thread reads together: their rows share the products with each weight.
constexpr int64_t group_size = 16;

// Keys that can be kept: of the data or of positions, one kind at a time.
bool can_continue(const AttentionBlock& block) {
  if (block.data) {
    return !block.positions && block.data->scores == Scores::dot &&
           block.data->scale == SourceScale::none && block.weighting == Weighting::softmax;
  }
  return block.positions && block.positions->query_key && block.weighting == Weighting::softmax;
}

void check_model(const ModelSpec& spec, const Plan& plan) {
  const char* problem = nullptr;
  if (spec.vocabulary == 0 || spec.output_columns != spec.vocabulary || spec.data_columns > 0 ||
      spec.positions_in_input) {
    problem = "a model that does not read and write tokens alone";
  } else if (!spec.causal || spec.scratch_nodes > 0) {
    problem = "a model whose nodes attend to later ones";
  } else if (!std::ranges::all_of(plan.layers, [](const LayerBlock& layer) {
               return can_continue(layer.attention);
             })) {
    problem = "a model without queries and keys";
  }
  if (problem == nullptr) return;
  throw Error(ExitCode::configuration, fmt::format("{} cannot continue a text", problem),
              "a causal model of tokens without scratch nodes, with queries and keys",
              "train with --causal and --scratch-nodes 0");
}

void add_to(const std::vector<float>& from, std::vector<float>& to) {
  for (size_t i = 0; i < to.size(); ++i) to[i] += from[i];
}

}  // namespace

// The rows that are being read lie text after text, those of a text by place.
struct TextGenerator::Memory {
  struct Layer {
    std::vector<float> keys, values;  // [texts, nodes, width of all heads]
  };
  std::vector<Layer> layers;
  std::vector<int> length;    // of each text, with what is being read
  std::vector<int> new_rows;  // of each text
  std::vector<int> place;     // of each row
  int64_t rows() const { return static_cast<int64_t>(place.size()); }
};

TextGenerator::TextGenerator(const ModelSpec& spec, const Parameters<float>& parameters)
    : spec_(spec), plan_(plan_of(spec_)), parameters_(parameters), maps_(plan_) {
  check_model(spec_, plan_);
  maps_.prepare(parameters_);
  if (spec_.uses_positions()) positions_ = positions_of(spec_, parameters_);
}

std::vector<TokenText> TextGenerator::continue_texts(std::span<const TokenText> texts,
                                                     const GenerationOptions& options) const {
  for (const TokenText& text : texts) check(text);
  const auto count = static_cast<int64_t>(texts.size());
  std::vector<TokenText> continuations(texts.size());
  parallel_for((count + group_size - 1) / group_size, std::max(1, options.threads),
               [&](int64_t group) {
                 const int64_t first = group * group_size;
                 const int64_t size = std::min(group_size, count - first);
                 continue_group(texts.subspan(first, size), options,
                                std::span(continuations).subspan(first, size));
               });
  return continuations;
}

void TextGenerator::check(const TokenText& text) const {
  if (text.empty() || static_cast<int64_t>(text.size()) > spec_.real_nodes) {
    throw Error(ExitCode::data, fmt::format("a text of {} tokens", text.size()),
                fmt::format("1 to {} tokens, the model's nodes", spec_.real_nodes));
  }
  for (const int32_t token : text) {
    if (token >= 0 && token < spec_.vocabulary) continue;
    throw Error(ExitCode::data, fmt::format("token {} in a text", token),
                fmt::format("0 to {}: the model's vocabulary", spec_.vocabulary - 1));
  }
}

void TextGenerator::continue_group(std::span<const TokenText> texts,
                                   const GenerationOptions& options,
                                   std::span<TokenText> continuations) const {
  const int64_t vocabulary = spec_.vocabulary;
  std::vector<TokenText> more(texts.begin(), texts.end());
  Memory memory;
  memory.layers.resize(spec_.depth);
  memory.length.assign(texts.size(), 0);
  for (int step = 0; step < options.most_tokens; ++step) {
    const std::vector<float> outputs = read(more, memory);  // of the texts that go on
    int64_t row = 0;
    bool goes_on = false;
    for (size_t t = 0; t < texts.size(); ++t) {
      if (more[t].empty()) continue;
      const float* output = &outputs[row++ * vocabulary];
      const auto best =
          static_cast<int32_t>(std::max_element(output, output + vocabulary) - output);
      more[t].clear();
      if (best == options.end) continue;
      continuations[t].push_back(best);
      if (memory.length[t] == spec_.real_nodes) continue;
      more[t] = {best};
      goes_on = true;
    }
    if (!goes_on) return;
  }
}

// Outputs behind the last row of every text that has new tokens.
std::vector<float> TextGenerator::read(const std::vector<TokenText>& more, Memory& memory) const {
  const int64_t d = spec_.width;
  TokenText tokens;
  std::vector<int64_t> last_rows;
  memory.place.clear();
  memory.new_rows.clear();
  for (size_t t = 0; t < more.size(); ++t) {
    for (const int32_t token : more[t]) {
      tokens.push_back(token);
      memory.place.push_back(memory.length[t]++);
    }
    memory.new_rows.push_back(static_cast<int>(more[t].size()));
    if (!more[t].empty()) last_rows.push_back(memory.rows() - 1);
  }
  std::vector<float> x(memory.rows() * d);
  generic::embed(memory.rows(), d, tokens.data(), tensor(plan_.input.tokens), x.data());
  for (int64_t r = 0; plan_.input.positions_added && r < memory.rows(); ++r) {
    for (int64_t c = 0; c < d; ++c) x[r * d + c] += positions_[memory.place[r] * d + c];
  }
  for (int layer = 0; layer < spec_.depth; ++layer) {
    const LayerBlock& block = plan_.layers[layer];
    const bool before = block.when == Normalisation::before,
               after = block.when == Normalisation::after;
    const std::vector<float> attended = before ? normalised(*block.attention_norm, x) : x;
    std::vector<float> o = attend(layer, attended, memory);
    if (block.join == Join::add) {
      add_to(o, x);
      if (after) x = normalised(*block.attention_norm, x);
      add_to(read_mlp(block.mlp, before ? normalised(*block.mlp_norm, x) : x), x);
      if (after) x = normalised(*block.mlp_norm, x);
      continue;
    }
    std::vector<float> joined(2 * x.size());
    for (int64_t r = 0; r < memory.rows(); ++r) {
      std::copy_n(&attended[r * d], d, &joined[2 * r * d]);
      std::copy_n(&o[r * d], d, &joined[(2 * r + 1) * d]);
    }
    x = read_mlp(block.mlp, std::move(joined));
    if (after) x = normalised(*block.attention_norm, x);
  }
  std::vector<float> last(last_rows.size() * d);
  for (size_t i = 0; i < last_rows.size(); ++i) {
    std::copy_n(&x[last_rows[i] * d], d, &last[static_cast<int64_t>(i) * d]);
  }
  if (plan_.head.norm) last = normalised(*plan_.head.norm, last);
  return mapped(plan_.head.map, last);
}

std::vector<float> TextGenerator::attend(int layer, const std::vector<float>& attended,
                                         Memory& memory) const {
  const AttentionBlock& block = plan_.layers[layer].attention;
  const bool from_data = block.data.has_value();
  const bool with_positions = !from_data || block.data->positions_joined;
  const LinearBlock& query_key = from_data ? block.data->query_key : *block.positions->query_key;
  const int64_t rows = memory.rows(), d = spec_.width, nodes = spec_.real_nodes;
  const int64_t p = spec_.encoding_size, key = from_data ? block.data->key_size : block.positions->key_size,
                keys = block.heads * key;

  std::vector<float> source;
  if (!with_positions) {
    source = attended;
  } else {
    for (int64_t r = 0; r < rows; ++r) {
      if (from_data) source.insert(source.end(), &attended[r * d], &attended[r * d] + d);
      const float* position = &positions_[memory.place[r] * p];
      source.insert(source.end(), position, position + p);
    }
  }
  std::vector<float> queries_and_keys = mapped(query_key, source);
  if (from_data ? block.data->rope : block.positions->rope) {
    generic::rotate<float>(rows, 2 * block.heads, key, memory.place, 1, queries_and_keys.data());
  }
  const std::vector<float> value = mapped(block.value, attended);

  Memory::Layer& kept = memory.layers[layer];
  kept.keys.resize(memory.length.size() * nodes * keys);
  kept.values.resize(memory.length.size() * nodes * d);
  std::vector<float> mixed(rows * d), scores;
  const float scale = 1 / std::sqrt(static_cast<float>(key));
  int64_t first = 0;  // row of the text
  for (size_t t = 0; t < memory.length.size(); ++t) {
    const int64_t count = memory.new_rows[t], length = memory.length[t], read = length - count;
    float* text_keys = &kept.keys[static_cast<int64_t>(t) * nodes * keys];
    float* text_values = &kept.values[static_cast<int64_t>(t) * nodes * d];
    std::copy_n(value.data() + first * d, count * d, text_values + read * d);
    for (int64_t r = 0; r < count; ++r) {
      for (int64_t h = 0; h < block.heads; ++h) {
        std::copy_n(&queries_and_keys[((first + r) * block.heads + h) * 2 * key + key], key,
                    text_keys + (read + r) * keys + h * key);
      }
    }
    scores.resize(count * length);
    for (int64_t h = 0; count > 0 && h < block.heads; ++h) {
      generic::product(false, true, count, length, key, scale,
                       &queries_and_keys[(first * block.heads + h) * 2 * key], 2 * keys,
                       text_keys + h * key, keys, false, scores.data(), length);
      for (int64_t r = 0; r < count; ++r) {
        std::fill(&scores[r * length] + read + r + 1, &scores[r * length] + length,
                  -std::numeric_limits<float>::infinity());
      }
      generic::softmax_rows(count, length, scores.data());
      generic::product(false, false, count, block.head_size, length, 1.0f, scores.data(), length,
                       text_values + h * block.head_size, d, false,
                       &mixed[first * d + h * block.head_size], d);
    }
    first += count;
  }
  return mapped(block.output, mixed);
}

std::vector<float> TextGenerator::read_mlp(const MlpBlock& block, std::vector<float> x) const {
  for (size_t i = 0; i < block.maps.size(); ++i) {
    std::vector<float> y = mapped(block.maps[i], x);
    if (i + 1 < block.maps.size()) {
      activate(block.activation, y, x);
    } else {
      x = std::move(y);
    }
  }
  return x;
}

std::vector<float> TextGenerator::normalised(const NormalisationBlock& block,
                                             const std::vector<float>& x) const {
  std::vector<float> y(x.size());
  generic::layer_norm(static_cast<int64_t>(x.size()) / spec_.width, spec_.width, x.data(),
                      tensor(block.gain), tensor(block.shift), y.data());
  return y;
}

std::vector<float> TextGenerator::mapped(const LinearBlock& map,
                                         const std::vector<float>& x) const {
  const auto rows = static_cast<int64_t>(x.size()) / map.in;
  std::vector<float> y(rows * map.out);
  maps_.forward(map, rows, x.data(), y.data());
  return y;
}

const float* TextGenerator::tensor(TensorId id) const {
  return parameters_.slice(parameters_.layout().tensors()[id]).data();
}

}  // namespace posattn
