// Numbers and lists of numbers as users write them. Strict: the whole text must be the number, and
// every error (usage) quotes the text and says what was expected. `name` is the flag or key.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace posattn {

// The lines of a text without their ends; an empty last line is none.
std::vector<std::string_view> split_lines(std::string_view text);

// Reads a whole text as a number; false where it is none.
template <class Number>
bool parse_exactly(std::string_view text, Number& number) {
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, number);
  return result.ec == std::errc() && result.ptr == end && !text.empty();
}

// The parts between the commas. An empty text has one empty part.
std::vector<std::string_view> split_at_commas(std::string_view text);

int64_t parse_integer(std::string_view text, std::string_view name);
double parse_number(std::string_view text, std::string_view name);  // finite

// "1..10,1000,0.5": whole-number ranges and single numbers, in the given order; above 0, each at
// most once.
std::vector<double> parse_scales(std::string_view text, std::string_view name = "--scales");

// "0,0.5,-2,4..8": any finite numbers, each at most once.
std::vector<double> parse_numbers(std::string_view text, std::string_view name);

constexpr uint64_t largest_seed = 9'000'000'000'000'000'000;

// "0..9,12": whole numbers from 0 to largest_seed, each at most once.
std::vector<uint64_t> parse_seeds(std::string_view text, std::string_view name = "--seeds");

// "4,8,16..32": whole numbers from 1 to 2^20, each at most once.
std::vector<int> parse_lengths(std::string_view text, std::string_view name = "--lengths");

// Whether text in UTF-8 can go to a terminal or a figure as one line: no control characters, line
// breaks or marks that change the direction of writing (and so hide what a line says).
bool is_plain_line(std::string_view text);

// `text` with every such character, and what is no UTF-8, as "\x1b" or "\u202e"; for what comes
// from files and flags. With `keep_layout` line breaks and tabs stay. JSON stays JSON of the same
// values: it holds no raw characters below U+0020 but its layout, and "\u202e" is its own way to
// write one.
std::string printable(std::string_view text, bool keep_layout = false);

// Bytes of the well-formed character at the start of `text` (which is not empty), or 0 where it is
// broken: cut off, overlong, a surrogate or beyond U+10FFFF.
size_t utf8_size(std::string_view text);

// The place of the first byte that belongs to no well-formed character, or npos.
size_t find_broken_utf8(std::string_view text);

}  // namespace posattn
