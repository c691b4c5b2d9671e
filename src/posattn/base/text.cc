#include "posattn/base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "posattn/base/error.h"

namespace posattn {
namespace {

constexpr size_t list_limit = 10000;  // numbers in one list
constexpr uint64_t length_limit = 1 << 20;
constexpr double scale_limit = 1e12;  // far above it a squared error no longer fits a float

Error bad_text(std::string_view name, std::string_view text, std::string expected) {
  return Error(ExitCode::usage, fmt::format("{}: '{}'", name, text), std::move(expected));
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

// The code point of one well-formed character.
uint32_t code_point(std::string_view character) {
  const auto lead = static_cast<uint8_t>(character[0]);
  if (character.size() == 1) return lead;
  uint32_t point = lead & (0xffU >> (character.size() + 1));
  for (const char c : character.substr(1)) point = point << 6U | (static_cast<uint8_t>(c) & 0x3fU);
  return point;
}

// A terminal may act upon it, or it changes the direction of writing.
bool is_unsafe(uint32_t point) {
  const auto within = [point](uint32_t first, uint32_t last) {
    return point >= first && point <= last;
  };
  return point < 0x20 || within(0x7f, 0x9f) || point == 0x061c || within(0x200e, 0x200f) ||
         within(0x2028, 0x202e) || within(0x2066, 0x2069);
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

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
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

bool is_plain_line(std::string_view text) { return printable(text) == text; }

std::string printable(std::string_view text, bool keep_layout) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    const size_t size = utf8_size(text);
    const std::string_view character = text.substr(0, std::max<size_t>(1, size));
    const uint32_t point = size > 0 ? code_point(character) : 0;
    if (keep_layout && (point == '\n' || point == '\t')) {
      shown += character;
    } else if (size == 0 || point < 0x20) {
      shown += fmt::format("\\x{:02x}", static_cast<uint8_t>(character[0]));
    } else if (is_unsafe(point)) {
      shown += fmt::format("\\u{:04x}", point);
    } else {
      shown += character;
    }
    text.remove_prefix(character.size());
  }
  return shown;
}

size_t utf8_size(std::string_view text) {
  const auto lead = static_cast<uint8_t>(text[0]);
  if (lead < 0x80) return 1;
  const size_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < size) return 0;
  uint32_t point = lead & (0xffU >> (size + 1));
  for (size_t i = 1; i < size; ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    if ((byte & 0xc0U) != 0x80) return 0;
    point = point << 6U | (byte & 0x3fU);
  }
  constexpr uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = point >= 0xd800 && point <= 0xdfff;
  return point >= smallest[size] && point <= 0x10ffff && !surrogate ? size : 0;
}

size_t find_broken_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t size = utf8_size(text.substr(at));
    if (size == 0) return at;
    at += size;
  }
  return std::string_view::npos;
}

}  // namespace posattn
