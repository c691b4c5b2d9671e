#include "posattn/text/byte_pair_tokeniser.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <unordered_map>

#include "posattn/base/error.h"
#include "posattn/base/file.h"
#include "posattn/base/strict_json.h"
#include "posattn/base/text.h"
#include "posattn/text/byte_characters.h"

namespace posattn {
namespace {

constexpr std::string_view vocabulary_file = "vocab.json", merges_file = "merges.txt";
constexpr std::string_view end_of_text = "<|endoftext|>";
constexpr uint64_t file_limit = 64 << 20;
constexpr int64_t most_tokens = 1 << 20;

std::string place_of(const std::string& where, std::string_view file) {
  return where.empty() ? std::string(file) : (std::filesystem::path(where) / file).string();
}

Error bad(const std::string& place, std::string what, std::string expected) {
  return Error(ExitCode::data, place + ": " + std::move(what), std::move(expected),
               "take the file as it is distributed with the weights");
}

// Each token's place among the numbers 0 .. size - 1, by its characters.
std::vector<std::string> read_vocabulary(std::string_view text, const std::string& place) {
  const nlohmann::json object = parse_strict_json(text, place);
  if (!object.is_object() || object.empty() || object.size() > most_tokens) {
    throw bad(place, "not an object of tokens",
              fmt::format("{{\"token\": number, ...}} of 1 to {} tokens", most_tokens));
  }
  std::vector<std::string> tokens(object.size());
  std::vector<bool> taken(object.size(), false);
  for (const auto& [token, number] : object.items()) {
    if (!number.is_number_unsigned() || number.get<uint64_t>() >= tokens.size()) {
      throw bad(place, fmt::format("token '{}' has the number {}", printable(token), number.dump()),
                fmt::format("the numbers 0 to {}, each once", tokens.size() - 1));
    }
    const auto at = number.get<size_t>();
    if (taken[at]) {
      throw bad(place,
                fmt::format("tokens '{}' and '{}' both have the number {}", printable(tokens[at]),
                            printable(token), at),
                fmt::format("the numbers 0 to {}, each once", tokens.size() - 1));
    }
    taken[at] = true;
    tokens[at] = token;
  }
  return tokens;
}

class Reader {
 public:
  Reader(const std::vector<std::string>& tokens, std::string place)
      : place_(std::move(place)), made_(tokens.size(), false) {
    for (size_t i = 0; i < tokens.size(); ++i) {
      numbers_.emplace(tokens[i], static_cast<int32_t>(i));
    }
  }

  int32_t number(const std::string& token) const {
    const auto found = numbers_.find(token);
    return found == numbers_.end() ? -1 : found->second;
  }

  // A single byte, or the result of an earlier merge.
  void make(int32_t token) { made_[token] = true; }

  BytePairs read_merges(std::string_view text) {
    check_utf8(text, place_);
    BytePairs pairs;
    int64_t line_number = 0;
    while (!text.empty()) {
      const size_t end = std::min(text.find('\n'), text.size());
      std::string_view line = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (++line_number == 1 && line.starts_with("#version")) continue;
      if (line.empty() && text.empty()) break;
      read_merge(line, fmt::format("{}:{}", place_, line_number), pairs);
    }
    return pairs;
  }

 private:
  void read_merge(std::string_view line, const std::string& at, BytePairs& pairs) {
    const size_t space = line.find(' ');
    const std::string left(line.substr(0, space)),
        right(space == std::string_view::npos ? "" : line.substr(space + 1));
    if (left.empty() || right.empty() || right.find(' ') != std::string::npos) {
      throw bad(at, fmt::format("'{}'", printable(line)), "two tokens with a space between them");
    }
    for (const std::string& part : {left, right}) {
      if (number(part) >= 0 && made_[number(part)]) continue;
      throw bad(at, fmt::format("nothing makes '{}'", printable(part)),
                "a single byte, or what an earlier line merges");
    }
    const int32_t result = number(left + right);
    if (result < 0) {
      throw bad(at, fmt::format("'{}' is not in the vocabulary", printable(left + right)),
                fmt::format("a token of {}", vocabulary_file));
    }
    if (made_[result]) {
      throw bad(at, fmt::format("'{}' is made a second time", printable(left + right)),
                "every token by one merge");
    }
    make(result);
    pairs.add(number(left), number(right), result);
  }

  std::string place_;  // of the merges
  std::unordered_map<std::string, int32_t> numbers_;
  std::vector<bool> made_;
};

}  // namespace

BytePairTokeniser::BytePairTokeniser(std::string_view vocabulary, std::string_view merges,
                                     const std::string& where)
    : where_(where) {
  const std::string place = place_of(where, vocabulary_file);
  const std::vector<std::string> tokens = read_vocabulary(vocabulary, place);
  for (const std::string& token : tokens) {
    const std::optional<std::string> bytes = characters_to_bytes(token);
    if (!bytes || bytes->empty()) {
      throw bad(place, fmt::format("token '{}' does not stand for bytes", printable(token)),
                "characters that GPT-2 writes bytes with");
    }
    bytes_.push_back(*bytes);
  }
  Reader reader(tokens, place_of(where, merges_file));
  for (int byte = 0; byte < 256; ++byte) {
    const std::string character = bytes_to_characters(std::string(1, static_cast<char>(byte)));
    single_bytes_[byte] = reader.number(character);
    if (single_bytes_[byte] < 0) {
      throw bad(place, fmt::format("no token for byte 0x{:02x} ('{}')", byte, character),
                "a token for each of the 256 bytes");
    }
    reader.make(single_bytes_[byte]);
  }
  end_ = reader.number(std::string(end_of_text));
  if (end_ < 0) {
    throw bad(place, fmt::format("no token '{}'", end_of_text), "the token that ends a text");
  }
  pairs_ = reader.read_merges(merges);
}

std::vector<int32_t> BytePairTokeniser::encode(std::string_view text) const {
  std::vector<int32_t> tokens, piece;
  for (const std::string_view word : words_.split(text)) {
    piece.clear();
    for (const char c : word) piece.push_back(single_bytes_[static_cast<unsigned char>(c)]);
    pairs_.merge(piece);
    tokens.insert(tokens.end(), piece.begin(), piece.end());
  }
  return tokens;
}

std::string BytePairTokeniser::decode(std::span<const int32_t> tokens) const {
  std::string text;
  for (const int32_t token : tokens) {
    if (token < 0 || token >= size()) throw std::out_of_range("a token outside the vocabulary");
    if (token != end_) text += bytes_[token];
  }
  return text;
}

BytePairTokeniser read_byte_pair_tokeniser(const std::filesystem::path& folder) {
  return {read_text_file(folder / vocabulary_file, file_limit),
          read_text_file(folder / merges_file, file_limit), folder.string()};
}

}  // namespace posattn
