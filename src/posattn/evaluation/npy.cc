#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "posattn/base/error.h"
#include "posattn/evaluation/table.h"

namespace posattn {
namespace {

static_assert(std::endian::native == std::endian::little, "values are copied as they are");

constexpr std::string_view magic = "\x93NUMPY";
constexpr size_t largest_header = 65535;

struct Header {
  std::optional<std::string> descr;
  std::optional<bool> fortran_order;
  std::optional<std::vector<int64_t>> shape;
};

class NpyParser {
 public:
  NpyParser(std::string_view bytes, std::string_view name) : bytes_(bytes), name_(name) {}

  Table parse(int64_t expected_columns, const RowPattern& pattern) {
    read_header();
    if (*header_.fortran_order) {
      refuse("an array in Fortran order", "C order", "save numpy.ascontiguousarray(x)");
    }
    Table table;
    table.pattern = pattern;
    set_size(table);
    if (expected_columns > 0 && table.columns != expected_columns) {
      refuse(fmt::format("rows of {} numbers", table.columns),
             fmt::format("{} numbers per row", expected_columns), "one row per sample");
    }
    for (const auto& [type, read] : types) {
      if (*header_.descr != type) continue;
      (this->*read)(table);
      return table;
    }
    refuse("an array of another type", "floats of 4 or 8 bytes or integers, little-endian",
           "save x.astype('float32'), or x.astype('int32') for tokens");
  }

 private:
  [[noreturn]] void refuse(const std::string& problem, std::string expected,
                           std::string hint = {}) const {
    throw Error(ExitCode::data, fmt::format("{}: {}", name_, problem), std::move(expected),
                std::move(hint));
  }
  [[noreturn]] void refuse_header() const {
    refuse("not a valid NPY header", "a dictionary of descr, fortran_order and shape");
  }

  uint32_t byte(size_t at) const { return static_cast<unsigned char>(bytes_[at]); }

  // Magic, version, length of the header, and the header: a dictionary written as Python does.
  void read_header() {
    if (!looks_like_npy(bytes_) || bytes_.size() < 10) refuse("no NPY file", "NPY's first bytes");
    const uint32_t version = byte(6);
    if (version < 1 || version > 3) {
      refuse(fmt::format("NPY version {}", version), "version 1, 2 or 3");
    }
    size_t size = byte(8) | byte(9) << 8;
    size_t start = 10;
    if (version > 1) {
      if (bytes_.size() < 12) refuse_header();
      size |= static_cast<size_t>(byte(10)) << 16 | static_cast<size_t>(byte(11)) << 24;
      start = 12;
    }
    if (size > largest_header || size > bytes_.size() - start) refuse_header();
    rest_ = bytes_.substr(start, size);
    data_ = bytes_.substr(start + size);
    expect('{');
    while (!accept('}')) {
      read_entry();
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_blanks();
    if (!rest_.empty() || !header_.descr || !header_.fortran_order || !header_.shape) {
      refuse_header();
    }
  }

  void read_entry() {
    const std::string key = quoted();
    expect(':');
    if (key == "descr" && !header_.descr) {
      header_.descr = quoted();
    } else if (key == "fortran_order" && !header_.fortran_order) {
      header_.fortran_order = boolean();
    } else if (key == "shape" && !header_.shape) {
      header_.shape = sizes();
    } else {
      refuse_header();
    }
  }

  void skip_blanks() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\n\r"), rest_.size()));
  }
  bool accept(char wanted) {
    skip_blanks();
    if (rest_.empty() || rest_[0] != wanted) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char wanted) {
    if (!accept(wanted)) refuse_header();
  }
  std::string quoted() {
    const char quote = accept('\'') ? '\'' : '"';
    if (quote == '"') expect('"');
    const size_t end = rest_.find(quote);
    if (end == std::string_view::npos) refuse_header();
    std::string text(rest_.substr(0, end));
    rest_.remove_prefix(end + 1);
    return text;
  }
  bool boolean() {
    skip_blanks();
    for (const std::string_view word : {"True", "False"}) {
      if (!rest_.starts_with(word)) continue;
      rest_.remove_prefix(word.size());
      return word == "True";
    }
    refuse_header();
  }
  std::vector<int64_t> sizes() {
    std::vector<int64_t> list;
    expect('(');
    while (!accept(')')) {
      skip_blanks();
      int64_t size = -1;
      const auto [stop, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), size);
      if (error != std::errc() || size < 0) refuse_header();
      rest_.remove_prefix(stop - rest_.data());
      list.push_back(size);
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return list;
  }

  void set_size(Table& table) const {
    const std::vector<int64_t>& shape = *header_.shape;
    if (shape.empty()) refuse("a single number", "an array with one row per sample");
    table.rows = shape.size() == 1 ? 1 : shape[0];
    table.columns = 1;
    for (size_t axis = shape.size() == 1 ? 0 : 1; axis < shape.size(); ++axis) {
      if (__builtin_mul_overflow(table.columns, shape[axis], &table.columns)) refuse_header();
    }
    if (table.rows == 0 || table.columns == 0) {
      refuse("no rows of numbers", "one row of numbers per sample");
    }
  }

  template <class T>
  void read_numbers(Table& table) const {
    int64_t count = 0;
    int64_t size = 0;
    if (__builtin_mul_overflow(table.rows, table.columns, &count) ||
        __builtin_mul_overflow(count, static_cast<int64_t>(sizeof(T)), &size) ||
        static_cast<uint64_t>(size) != data_.size()) {
      refuse(fmt::format("{} bytes of data", data_.size()),
             fmt::format("{} rows of {} numbers of {} bytes", table.rows, table.columns, sizeof(T)),
             "the file may be truncated");
    }
    table.values.reserve(table.pattern.real > 0 ? count : 0);
    for (int64_t i = 0; i < count; ++i) {
      T value;
      std::memcpy(&value, data_.data() + i * sizeof(T), sizeof(T));
      const int64_t column = i % table.columns;
      const auto refuse_value = [&](const char* expected) {
        refuse(fmt::format("{} in row {}, column {}", value, i / table.columns + 1, column + 1),
               expected);
      };
      if (table.pattern.is_whole(column)) {
        const std::optional<int32_t> whole = whole_number(value);
        if (!whole) refuse_value(whole_number_expected);
        table.whole.push_back(*whole);
        continue;
      }
      // Also false for NaN.
      if (!(std::abs(static_cast<double>(value)) <= std::numeric_limits<float>::max())) {
        refuse_value("a finite number within 32-bit floating point");
      }
      table.values.push_back(static_cast<float>(value));
    }
  }

  struct Type {
    std::string_view name;
    void (NpyParser::*read)(Table&) const;
  };
  static const std::array<Type, 10> types;

  std::string_view bytes_;
  std::string name_;
  std::string_view rest_;  // of the header
  std::string_view data_;
  Header header_;
};

const std::array<NpyParser::Type, 10> NpyParser::types = {{
    {"<f4", &NpyParser::read_numbers<float>},
    {"<f8", &NpyParser::read_numbers<double>},
    {"|i1", &NpyParser::read_numbers<int8_t>},
    {"|u1", &NpyParser::read_numbers<uint8_t>},
    {"<i2", &NpyParser::read_numbers<int16_t>},
    {"<u2", &NpyParser::read_numbers<uint16_t>},
    {"<i4", &NpyParser::read_numbers<int32_t>},
    {"<u4", &NpyParser::read_numbers<uint32_t>},
    {"<i8", &NpyParser::read_numbers<int64_t>},
    {"<u8", &NpyParser::read_numbers<uint64_t>},
}};

template <class T>
void append_bytes(std::string& bytes, const std::vector<T>& values) {
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

}  // namespace

bool looks_like_npy(std::string_view bytes) { return bytes.starts_with(magic); }

Table parse_npy(std::string_view bytes, std::string_view name, int64_t expected_columns,
                const RowPattern& pattern) {
  return NpyParser(bytes, name).parse(expected_columns, pattern);
}

std::string to_npy(const Table& table) {
  assert(table.pattern.whole == 0 || table.pattern.real == 0);
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}, {}), }}",
                  table.pattern.whole > 0 ? "<i4" : "<f4", table.rows, table.columns);
  // The data start at a multiple of 64 bytes, after 10 bytes, the header and a line break.
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  std::string bytes(magic);
  bytes += {1, 0, static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  bytes += header;
  append_bytes(bytes, table.values);
  append_bytes(bytes, table.whole);
  return bytes;
}

}  // namespace posattn
