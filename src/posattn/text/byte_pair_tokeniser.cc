#include "posattn/text/byte_pair_tokeniser.h"

#include <fmt/format.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <queue>
#include <tuple>

#include "posattn/base/error.h"
#include "posattn/base/file.h"
#include "posattn/base/json_fields.h"
#include "posattn/base/text.h"

namespace posattn {
namespace {

constexpr std::string_view vocabulary_file = "vocab.json", merges_file = "merges.txt";
constexpr std::string_view end_of_text = "<|endoftext|>";
constexpr uint64_t file_limit = 64 << 20;
constexpr int64_t most_tokens = 1 << 20;

struct Place {
  std::string name, hint;
};

Error bad(const Place& place, std::string what, std::string expected) {
  return Error(ExitCode::data, place.name + ": " + std::move(what), std::move(expected),
               place.hint);
}

// Each token's place among the numbers 0 .. size - 1, by its characters.
std::vector<std::string> read_vocabulary(std::string_view text, const Place& place) {
  const nlohmann::json object = parse_strict_json(text, place.name);
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

// The lines of a text; the last one may or may not end.
std::vector<std::string> lines_of(std::string_view text, const Place& place) {
  const std::vector<std::string_view> lines = split_lines(text);
  if (lines.size() > most_tokens) {
    throw bad(place, "too many tokens", fmt::format("1 to {}", most_tokens));
  }
  return {lines.begin(), lines.end()};
}

class Reader {
 public:
  Reader(const std::vector<std::string>& tokens, const Place& of_tokens, Place of_merges)
      : place_(std::move(of_merges)), made_(tokens.size(), false) {
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (numbers_.emplace(tokens[i], static_cast<int32_t>(i)).second) continue;
      throw bad(of_tokens, fmt::format("token '{}' twice", printable(tokens[i])), "each once");
    }
  }

  int32_t number(const std::string& token) const {
    const auto found = numbers_.find(token);
    return found == numbers_.end() ? -1 : found->second;
  }

  // A single byte, or the result of an earlier merge.
  void make(int32_t token) { made_[token] = true; }

  // `lines`: what was read, each line as it is written.
  BytePairs read_merges(std::string_view text, std::string& lines) {
    check_utf8(text, place_.name);
    BytePairs pairs;
    int64_t line_number = 0;
    for (std::string_view line : split_lines(text)) {
      const bool last = line.data() + line.size() + 1 >= text.data() + text.size();
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (++line_number == 1 && line.starts_with("#version")) continue;
      if (line.empty() && last) break;
      read_merge(line, {fmt::format("{}:{}", place_.name, line_number), place_.hint}, pairs);
      lines.append(line) += '\n';
    }
    return pairs;
  }

 private:
  void read_merge(std::string_view line, const Place& at, BytePairs& pairs) {
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
                "one of its tokens");
    }
    if (made_[result]) {
      throw bad(at, fmt::format("'{}' is made a second time", printable(left + right)),
                "every token by one merge");
    }
    make(result);
    pairs.add(number(left), number(right), result);
  }

  Place place_;  // of the merges
  std::unordered_map<std::string, int32_t> numbers_;
  std::vector<bool> made_;
};

uint64_t key_of(int32_t left, int32_t right) {
  return (uint64_t{static_cast<uint32_t>(left)} << 32) | static_cast<uint32_t>(right);
}

constexpr int32_t nothing = -1;

constexpr int first_other = 0x100;

constexpr bool prints(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

constexpr std::array<uint16_t, 256> characters = [] {
  std::array<uint16_t, 256> table{};
  int next = first_other;
  for (int byte = 0; byte < 256; ++byte) {
    table[byte] = static_cast<uint16_t>(prints(byte) ? byte : next++);
  }
  return table;
}();

constexpr int count = characters[0xad] + 1;  // the last byte that does not print

constexpr std::array<int, count> bytes_of = [] {
  std::array<int, count> table{};
  for (int& byte : table) byte = -1;
  for (int byte = 0; byte < 256; ++byte) table[characters[byte]] = byte;
  return table;
}();

}  // namespace

BytePairTokeniser::Places BytePairTokeniser::places_in(const std::string& folder) {
  const auto place = [&](std::string_view file) {
    return folder.empty() ? std::string(file) : (std::filesystem::path(folder) / file).string();
  };
  return {place(vocabulary_file), place(merges_file),
          "take the file as it is distributed with the weights"};
}

BytePairTokeniser::BytePairTokeniser(std::string_view vocabulary, std::string_view merges,
                                     const std::string& where)
    : BytePairTokeniser(
          read_vocabulary(vocabulary, {places_in(where).tokens, places_in(where).hint}), merges,
          places_in(where)) {}

BytePairTokeniser::BytePairTokeniser(const VocabularyText& text)
    : BytePairTokeniser(lines_of(text.tokens, {"vocabulary", ""}), text.merges,
                        {"vocabulary", "merges", ""}) {}

BytePairTokeniser::BytePairTokeniser(const std::vector<std::string>& tokens,
                                     std::string_view merges, const Places& places) {
  const Place place = {places.tokens, places.hint};
  for (const std::string& token : tokens) {
    const std::optional<std::string> bytes = characters_to_bytes(token);
    if (!bytes || bytes->empty()) {
      throw bad(place, fmt::format("token '{}' does not stand for bytes", printable(token)),
                "characters that GPT-2 writes bytes with");
    }
    bytes_.push_back(*bytes);
    text_.tokens.append(token) += '\n';
  }
  Reader reader(tokens, place, {places.merges, places.hint});
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
  pairs_ = reader.read_merges(merges, text_.merges);
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

void BytePairs::add(int32_t left, int32_t right, int32_t result) {
  merges_.emplace(key_of(left, right), Merge{static_cast<int32_t>(merges_.size()), result});
}

const BytePairs::Merge* BytePairs::find(int32_t left, int32_t right) const {
  const auto found = merges_.find(key_of(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

void BytePairs::merge(std::vector<int32_t>& tokens) const {
  // A list of places: a merge keeps the left place and takes the right one out.
  const auto count = static_cast<int32_t>(tokens.size());
  std::vector<int32_t> before(tokens.size()), behind(tokens.size());
  for (int32_t i = 0; i < count; ++i) {
    before[i] = i - 1;
    behind[i] = i + 1 < count ? i + 1 : nothing;
  }
  using Candidate = std::tuple<int32_t, int32_t, int32_t>;  // rank, place, result
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> candidates;
  const auto consider = [&](int32_t place) {
    if (place == nothing || behind[place] == nothing) return;
    const Merge* merge = find(tokens[place], tokens[behind[place]]);
    if (merge != nullptr) candidates.emplace(merge->rank, place, merge->result);
  };
  for (int32_t i = 0; i < count; ++i) consider(i);
  while (!candidates.empty()) {
    const auto [rank, place, result] = candidates.top();
    candidates.pop();
    // The pair may have been merged since it was found.
    const int32_t right = behind[place];
    if (tokens[place] == nothing || right == nothing) continue;
    const Merge* merge = find(tokens[place], tokens[right]);
    if (merge == nullptr || merge->rank != rank) continue;
    tokens[place] = result;
    tokens[right] = nothing;
    behind[place] = behind[right];
    if (behind[place] != nothing) before[behind[place]] = place;
    consider(before[place]);
    consider(place);
  }
  std::erase(tokens, nothing);
}

std::string bytes_to_characters(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    const int character = characters[static_cast<unsigned char>(c)];
    if (character < 0x80) {
      text += static_cast<char>(character);
    } else {  // none is above U+07FF
      text += static_cast<char>(0xc0 | (character >> 6));
      text += static_cast<char>(0x80 | (character & 0x3f));
    }
  }
  return text;
}

std::optional<std::string> characters_to_bytes(std::string_view text) {
  std::string bytes;
  for (size_t at = 0; at < text.size(); ++at) {
    int character = static_cast<unsigned char>(text[at]);
    if (character >= 0x80) {
      if ((character & 0xe0) != 0xc0 || ++at == text.size()) return std::nullopt;
      character = ((character & 0x1f) << 6) | (static_cast<unsigned char>(text[at]) & 0x3f);
    }
    if (character >= count || bytes_of[character] < 0) return std::nullopt;
    bytes += static_cast<char>(bytes_of[character]);
  }
  return bytes;
}

}  // namespace posattn
