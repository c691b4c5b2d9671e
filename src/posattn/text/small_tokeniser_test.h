// For tests: vocab.json and merges.txt of a small byte-pair encoding with random merges.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "posattn/base/random.h"
#include "posattn/text/byte_pair_tokeniser.h"

namespace posattn {

struct SmallTokeniserFiles {
  std::map<std::string, int> vocabulary;
  std::vector<std::pair<std::string, std::string>> merges;

  std::string vocabulary_text() const { return nlohmann::json(vocabulary).dump(); }
  std::string merges_text() const {
    std::string text = "#version: 0.2\n";
    for (const auto& [left, right] : merges) text += left + " " + right + "\n";
    return text;
  }
};

// `often`: the bytes that merges begin with; few of them make long tokens.
inline SmallTokeniserFiles small_tokeniser(int merges, std::string_view often, uint64_t seed) {
  RandomStream random(seed, Purpose::initial_values, 0, 0);
  SmallTokeniserFiles files;
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) {
    const std::string token = bytes_to_characters(std::string(1, static_cast<char>(byte)));
    files.vocabulary.emplace(token, byte);
    if (often.find(static_cast<char>(byte)) != std::string_view::npos) tokens.push_back(token);
  }
  while (static_cast<int>(files.merges.size()) < merges) {
    const std::string left = tokens[random.below(tokens.size())],
                      right = tokens[random.below(tokens.size())];
    const int next = static_cast<int>(files.vocabulary.size());
    if (!files.vocabulary.emplace(left + right, next).second) continue;
    files.merges.emplace_back(left, right);
    tokens.push_back(left + right);
  }
  files.vocabulary.emplace("<|endoftext|>", static_cast<int>(files.vocabulary.size()));
  return files;
}

}  // namespace posattn
