// Numbers and lists of numbers as users write them. Strict: the whole text must be the number, and
// every error (usage) quotes the text and says what was expected. `name` is the flag or key.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace posattn {

int64_t parse_integer(std::string_view text, std::string_view name);
double parse_number(std::string_view text, std::string_view name);  // finite

// "1..10,1000,0.5": whole-number ranges and single numbers, in the given order; above 0, each at
// most once.
std::vector<double> parse_scales(std::string_view text, std::string_view name = "--scales");

// "0..9,12": whole numbers from 0, each at most once.
std::vector<uint64_t> parse_seeds(std::string_view text, std::string_view name = "--seeds");

}  // namespace posattn
