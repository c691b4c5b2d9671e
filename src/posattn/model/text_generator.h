// Texts that a causal model of tokens continues, the most likely token each time. Keys and values
// of what has been read are kept, so that a new token costs one row and not a whole text.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "posattn/model/attention/linear_maps.h"
#include "posattn/model/spec/parameters.h"
#include "posattn/model/plan.h"
#include "posattn/model/spec/spec.h"

namespace posattn {

using TokenText = std::vector<int32_t>;

struct GenerationOptions {
  int most_tokens = 1;  // of a continuation
  int32_t end = -1;     // a continuation ends before this token
  int threads = 1;
};

class TextGenerator {
 public:
  // Throws Error(configuration) for a model that is none of tokens alone, that attends to
  // later tokens, has scratch nodes, or scores attention otherwise than by queries and keys.
  // Keeps a reference to the parameters.
  TextGenerator(const ModelSpec& spec, const Parameters<float>& parameters);

  // The continuation of each text. A text that has reached the model's number of nodes ends there.
  // Throws Error(data) for an empty text, one that is longer than that, and tokens outside the
  // vocabulary.
  std::vector<TokenText> continue_texts(std::span<const TokenText> texts,
                                        const GenerationOptions& options) const;

 private:
  struct Memory;  // keys and values of some texts
  void check(const TokenText& text) const;
  void continue_group(std::span<const TokenText> texts, const GenerationOptions& options,
                      std::span<TokenText> continuations) const;
  std::vector<float> read(const std::vector<TokenText>& more, Memory& memory) const;
  std::vector<float> attend(int layer, const std::vector<float>& attended, Memory& memory) const;
  std::vector<float> read_mlp(const MlpBlock& block, std::vector<float> x) const;
  std::vector<float> normalised(const NormalisationBlock& block, const std::vector<float>& x) const;
  std::vector<float> mapped(const LinearBlock& map, const std::vector<float>& x) const;
  const float* tensor(TensorId id) const;

  const ModelSpec spec_;
  const Plan plan_;
  const Parameters<float>& parameters_;
  LinearMaps<float> maps_;
  std::vector<float> positions_;  // P
};

}  // namespace posattn
