// Texts that a causal model of tokens continues, the most likely token each time. Keys and values
// of what has been read are kept, so that a new token costs one row and not a whole text.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "posattn/model/causal_network.h"

namespace posattn {

using TokenText = std::vector<int32_t>;

struct GenerationOptions {
  int most_tokens = 1;  // of a continuation
  int32_t end = -1;     // a continuation ends before this token
  int threads = 1;
};

class TextGenerator {
 public:
  // Throws Error(configuration) for a model that is none of tokens alone, or that cannot be read
  // token by token. Keeps a reference to the parameters.
  TextGenerator(const ModelSpec& spec, const Parameters<float>& parameters);

  // The continuation of each text. A text that has reached the model's number of nodes ends there.
  // Throws Error(data) for an empty text, one that is longer than that, and tokens outside the
  // vocabulary.
  std::vector<TokenText> continue_texts(std::span<const TokenText> texts,
                                        const GenerationOptions& options) const;

 private:
  void check(const TokenText& text) const;
  void continue_group(std::span<const TokenText> texts, const GenerationOptions& options,
                      std::span<TokenText> continuations) const;

  const ModelSpec spec_;
  const CausalNetwork network_;
};

}  // namespace posattn
