#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "posattn/base/error.h"
#include "posattn/base/limits.h"
#include "posattn/evaluation/table.h"

namespace posattn {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A file with this header, written for the given version.
template <class T>
std::string npy(const std::string& header, const std::vector<T>& values, char version = 1) {
  std::string bytes = "\x93NUMPY";
  bytes += {version, 0, static_cast<char>(header.size()), 0};
  if (version > 1) bytes += std::string(2, '\0');
  bytes += header;
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  return bytes;
}

std::string header(const std::string& type, const std::string& shape,
                   const std::string& fortran = "False") {
  return "{'descr': '" + type + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }\n";
}

std::string refusal_of(const std::string& bytes, int64_t expected_columns = 0,
                       const RowPattern& pattern = {}) {
  try {
    parse_npy(bytes, "x.npy", expected_columns, pattern);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::data);
    EXPECT_THAT(error.problem(), HasSubstr("x.npy: "));
    return error.what();
  }
  ADD_FAILURE() << "accepted " << bytes;
  return {};
}

TEST(Npy, ReadsEveryTypeAndVersion) {
  const std::vector<float> expected = {1, 2, -3, 4, 5, 6};
  for (const char version : {1, 2, 3}) {
    EXPECT_EQ(
        parse_npy(npy<float>(header("<f4", "(2, 3)"), {1, 2, -3, 4, 5, 6}, version), "x", 3).values,
        expected);
  }
  EXPECT_EQ(parse_npy(npy<double>(header("<f8", "(2, 3)"), {1, 2, -3, 4, 5, 6}), "x").values,
            expected);
  EXPECT_EQ(parse_npy(npy<int32_t>(header("<i4", "(2,3)"), {1, 2, -3, 4, 5, 6}), "x").values,
            expected);
  EXPECT_EQ(parse_npy(npy<int64_t>(header("<i8", "(2, 3,)"), {1, 2, -3, 4, 5, 6}), "x").values,
            expected);
}

TEST(Npy, TheFirstAxisCountsTheRows) {
  const Table one = parse_npy(npy<float>(header("<f4", "(4,)"), {1, 2, 3, 4}), "x");
  EXPECT_EQ(one.rows, 1);
  EXPECT_EQ(one.columns, 4);
  const Table three =
      parse_npy(npy<float>(header("<f4", "(2, 2, 2)"), {1, 2, 3, 4, 5, 6, 7, 8}), "x");
  EXPECT_EQ(three.rows, 2);
  EXPECT_EQ(three.columns, 4);
}

TEST(Npy, KeysInAnyOrderAndQuotes) {
  const std::string text = "{\"shape\": (1, 1), \"descr\": \"<f4\", \"fortran_order\": False}";
  EXPECT_THAT(parse_npy(npy<float>(text, {7}), "x").values, ElementsAre(7));
}

TEST(Npy, RefusesWhatItCannotRead) {
  const std::vector<float> two = {1, 2};
  EXPECT_THAT(refusal_of(npy(header("<f4", "(1, 2)", "True"), two)), HasSubstr("Fortran"));
  EXPECT_THAT(refusal_of(npy(header(">f4", "(1, 2)"), two)), HasSubstr("astype"));
  EXPECT_THAT(refusal_of(npy(header("|O", "(1, 2)"), two)), HasSubstr("astype"));
  EXPECT_THAT(refusal_of(npy(header("<f4", "()"), two)), HasSubstr("single number"));
  EXPECT_THAT(refusal_of(npy(header("<f4", "(0, 2)"), std::vector<float>{})), HasSubstr("no rows"));
  EXPECT_THAT(refusal_of(npy(header("<f4", "(2, 0)"), std::vector<float>{})), HasSubstr("no rows"));
  EXPECT_THAT(refusal_of(npy(header("<f4", "(1, 2)"), two, 4)), HasSubstr("version 4"));
  EXPECT_THAT(refusal_of(npy(header("<f4", "(1, 2)"), two), 8), HasSubstr("8 numbers per row"));
}

TEST(Npy, RefusesBrokenHeaders) {
  const std::vector<float> two = {1, 2};
  for (const char* text :
       {"", "{", "{}", "[]", "{'descr': '<f4'}", "{'descr': '<f4', 'fortran_order': False}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2)} x",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), 'more': 1}",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1, 2)}",
        "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1, 2)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1, 2)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1 2)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 99999999999999999999)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 4294967296, 4294967296)}",
        "{'descr': '<f4, 'fortran_order': False, 'shape': (1, 2)}"}) {
    EXPECT_THAT(refusal_of(npy(text, two)), HasSubstr("header")) << text;
  }
}

TEST(Npy, RefusesEveryTruncationAndExtension) {
  const std::string whole = npy<float>(header("<f4", "(1, 2)"), {1, 2});
  for (size_t size = 0; size < whole.size(); ++size) refusal_of(whole.substr(0, size));
  refusal_of(whole + '\0');
  // A size whose product is beyond every integer must not wrap round to the right one.
  refusal_of(npy<float>(header("<f4", "(4611686018427387905, 4)"), {1, 2, 3, 4}));
}

TEST(Npy, RefusesWhatIsNotFinite) {
  for (const double value : {std::nan(""), infinity, -infinity, 1e39}) {
    EXPECT_THAT(refusal_of(npy<double>(header("<f8", "(2, 2)"), {1, 2, 3, value})),
                HasSubstr("row 2, column 2"));
  }
}

TEST(Npy, WritesWhatReadsBackExactly) {
  for (int64_t columns = 1; columns < 130; columns += 13) {
    Table table{.rows = 3, .columns = columns, .values = {}};
    for (int64_t i = 0; i < 3 * columns; ++i) table.values.push_back(0.1f * static_cast<float>(i));
    const std::string bytes = to_npy(table);
    EXPECT_EQ((bytes.size() - table.values.size() * 4) % 64, 0u);
    const Table again = parse_npy(bytes, "x", columns);
    EXPECT_EQ(again.rows, 3);
    EXPECT_EQ(again.values, table.values);
  }
}

template <class T>
void expect_tokens(const std::string& type) {
  const Table table =
      parse_npy(npy<T>(header(type, "(2, 2)"), {0, 7, 100, 3}), "x", 2, {.whole = 1, .real = 0});
  EXPECT_THAT(table.whole, ElementsAre(0, 7, 100, 3)) << type;
  EXPECT_TRUE(table.values.empty());
}

TEST(Npy, WholeNumbersOfAnyType) {
  expect_tokens<int8_t>("|i1");
  expect_tokens<uint8_t>("|u1");
  expect_tokens<int16_t>("<i2");
  expect_tokens<uint16_t>("<u2");
  expect_tokens<int32_t>("<i4");
  expect_tokens<uint32_t>("<u4");
  expect_tokens<int64_t>("<i8");
  expect_tokens<uint64_t>("<u8");
  expect_tokens<float>("<f4");
  expect_tokens<double>("<f8");
}

TEST(Npy, WholeAndOtherColumns) {
  const RowPattern pattern{.whole = 1, .real = 1};
  const Table table =
      parse_npy(npy<double>(header("<f8", "(1, 4)"), {-1, 0.5, 16777217, 2}), "x", 0, pattern);
  EXPECT_THAT(table.whole, ElementsAre(-1, 16777217));
  EXPECT_THAT(table.values, ElementsAre(0.5, 2));
  for (const double value : {0.5, 2147483648.0, std::nan("")}) {
    EXPECT_THAT(refusal_of(npy<double>(header("<f8", "(2, 2)"), {1, 2, value, 2}), 0, pattern),
                testing::AllOf(HasSubstr("row 2, column 1"), HasSubstr("whole number")));
  }
  EXPECT_THAT(
      refusal_of(npy<uint64_t>(header("<u8", "(1, 2)"), {uint64_t{1} << 63, 2}), 0, pattern),
      HasSubstr("whole number"));
}

TEST(Npy, WritesWholeNumbersAsIntegers) {
  const RowPattern pattern{.whole = 1, .real = 0};
  const Table table{
      .rows = 2, .columns = 2, .values = {}, .whole = {1, -2, 3, 16777217}, .pattern = pattern};
  const std::string bytes = to_npy(table);
  EXPECT_THAT(bytes, HasSubstr("'<i4'"));
  EXPECT_EQ(parse_npy(bytes, "x", 2, pattern).whole, table.whole);
}

}  // namespace
}  // namespace posattn
