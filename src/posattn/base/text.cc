#include "posattn/base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <string>

#include "posattn/base/error.h"

namespace posattn {
namespace {

constexpr size_t list_limit = 10000;  // numbers in one list
constexpr uint64_t length_limit = 1 << 20;
constexpr double scale_limit = 1e12;  // far above it a squared error no longer fits a float

Error bad_text(std::string_view name, std::string_view text, std::string expected) {
  return Error(ExitCode::usage, fmt::format("{}: '{}'", name, text), std::move(expected));
}

template <class Number>
bool parse_exactly(std::string_view text, Number& number) {
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, number);
  return result.ec == std::errc() && result.ptr == end && !text.empty();
}

// Calls add_item for every item that is no range and add_number for every number of a range.
template <class AddItem, class AddNumber>
void parse_list(std::string_view text, std::string_view name, const char* example,
                AddItem&& add_item, AddNumber&& add_number) {
  size_t count = 0;
  for (const std::string_view item : split_at_commas(text)) {
    const size_t dots = item.find("..");
    uint64_t first = 0, last = 0;
    if (dots == std::string_view::npos) {
      add_item(item);
      ++count;
    } else {
      if (!parse_exactly(item.substr(0, dots), first) ||
          !parse_exactly(item.substr(dots + 2), last) || first > last) {
        throw bad_text(name, item, fmt::format("a range of whole numbers such as {}", example));
      }
      if (last - first >= list_limit) {
        throw bad_text(name, item, fmt::format("at most {} numbers", list_limit));
      }
      for (uint64_t offset = 0; offset <= last - first; ++offset) add_number(first + offset);
      count += last - first + 1;
    }
    if (count > list_limit) {
      throw bad_text(name, text, fmt::format("at most {} numbers", list_limit));
    }
  }
}

// Bytes of the character at `at` that a terminal may act upon or that changes the direction of
// writing; 0 for any other.
size_t unsafe_bytes(std::string_view text, size_t at) {
  const auto byte = [&](size_t place) -> int {
    return place < text.size() ? static_cast<unsigned char>(text[place]) : 0;
  };
  const int first = byte(at), second = byte(at + 1), third = byte(at + 2);
  if (first < 0x20 || first == 0x7f) return 1;
  if (first == 0xc2 && second < 0xa0) return second < 0x80 ? 1 : 2;  // U+0080 to U+009F
  if (first == 0xd8 && second == 0x9c) return 2;                     // U+061C
  if (first != 0xe2) return 0;
  const bool mark = second == 0x80 && (third == 0x8e || third == 0x8f);     // U+200E, U+200F
  const bool embedding = second == 0x80 && third >= 0xa8 && third <= 0xae;  // U+2028 to U+202E
  const bool isolation = second == 0x81 && third >= 0xa6 && third <= 0xa9;  // U+2066 to U+2069
  return mark || embedding || isolation ? 3 : 0;
}

struct WholeNumbers {
  std::string_view noun, example;
  const char* range;
  uint64_t least, most;
};

std::vector<uint64_t> parse_whole_numbers(std::string_view text, std::string_view name,
                                          const WholeNumbers& kind) {
  std::vector<uint64_t> numbers;
  std::set<uint64_t> seen;
  const auto add = [&](uint64_t number) {
    if (number < kind.least) {
      throw bad_text(name, text, fmt::format("{}s of at least {}", kind.noun, kind.least));
    }
    if (number > kind.most) {
      throw bad_text(name, text, fmt::format("{}s of at most {}", kind.noun, kind.most));
    }
    if (!seen.insert(number).second) {
      throw bad_text(name, text,
                     fmt::format("every {} once ({} appears twice)", kind.noun, number));
    }
    numbers.push_back(number);
  };
  const auto add_item = [&](std::string_view item) {
    uint64_t number = 0;
    if (!parse_exactly(item, number)) {
      throw bad_text(name, item, fmt::format("{}s such as {}", kind.noun, kind.example));
    }
    add(number);
  };
  parse_list(text, name, kind.range, add_item, add);
  return numbers;
}

// `check` throws for a number that does not suit; it is given the item that the number comes from.
template <class Check>
std::vector<double> parse_distinct(std::string_view text, std::string_view name,
                                   std::string_view noun, const Check& check) {
  std::vector<double> numbers;
  std::set<double> seen;
  const auto add = [&](double number, std::string_view item) {
    check(number, item);
    if (!seen.insert(number).second) {
      throw bad_text(name, text, fmt::format("every {} once ({} appears twice)", noun, number));
    }
    numbers.push_back(number);
  };
  parse_list(
      text, name, "1..10", [&](std::string_view item) { add(parse_number(item, name), item); },
      [&](uint64_t number) { add(static_cast<double>(number), text); });
  return numbers;
}

}  // namespace

std::vector<std::string_view> split_at_commas(std::string_view text) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

int64_t parse_integer(std::string_view text, std::string_view name) {
  int64_t number = 0;
  if (!parse_exactly(text, number)) throw bad_text(name, text, "a whole number");
  return number;
}

double parse_number(std::string_view text, std::string_view name) {
  double number = 0;
  if (!parse_exactly(text, number) || !std::isfinite(number)) {
    throw bad_text(name, text, "a finite number");
  }
  return number;
}

std::vector<double> parse_scales(std::string_view text, std::string_view name) {
  return parse_distinct(text, name, "scale", [&](double scale, std::string_view item) {
    if (scale > 0 && scale <= scale_limit) return;
    throw bad_text(name, item, fmt::format("scales above 0 and up to {}", scale_limit));
  });
}

std::vector<double> parse_numbers(std::string_view text, std::string_view name) {
  return parse_distinct(text, name, "number", [](double, std::string_view) {});
}

std::vector<uint64_t> parse_seeds(std::string_view text, std::string_view name) {
  return parse_whole_numbers(text, name,
                             {.noun = "seed",
                              .example = "3 or 0..9,12",
                              .range = "0..9",
                              .least = 0,
                              .most = largest_seed});
}

std::vector<int> parse_lengths(std::string_view text, std::string_view name) {
  const std::vector<uint64_t> lengths = parse_whole_numbers(text, name,
                                                            {.noun = "length",
                                                             .example = "8 or 4,8,16",
                                                             .range = "4..16",
                                                             .least = 1,
                                                             .most = length_limit});
  return {lengths.begin(), lengths.end()};
}

bool is_plain_line(std::string_view text) {
  for (size_t at = 0; at < text.size(); ++at) {
    if (unsafe_bytes(text, at) > 0) return false;
  }
  return true;
}

std::string printable(std::string_view text, bool keep_line_breaks) {
  std::string shown;
  for (size_t at = 0; at < text.size();) {
    const size_t unsafe = keep_line_breaks && text[at] == '\n' ? 0 : unsafe_bytes(text, at);
    if (unsafe == 0) shown += text[at++];
    for (const size_t end = at + unsafe; at < end; ++at) {
      shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[at]));
    }
  }
  return shown;
}

}  // namespace posattn
