#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "posattn/base/error.h"
#include "posattn/base/random.h"
#include "posattn/evaluation/table.h"

namespace posattn {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Error refusal_of(std::string_view text, int64_t expected_columns = 0,
                 const RowPattern& pattern = {}) {
  try {
    parse_csv(text, "x.csv", expected_columns, pattern);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::data);
    return error;
  }
  ADD_FAILURE() << "accepted: " << text;
  return {ExitCode::done, ""};
}

TEST(Csv, ARowInDoublePrecision) {
  EXPECT_THAT(parse_csv_row("a,b,c\n1e39, +0.1,-3\n", "x.csv"), ElementsAre(1e39, 0.1, -3));
  EXPECT_THROW(parse_csv_row("1,2\n3,4\n", "x.csv"), Error);
  EXPECT_THROW(parse_csv_row("1,1e999\n", "x.csv"), Error);
  EXPECT_THROW(parse_csv_row("", "x.csv"), Error);
}

TEST(Csv, ReadsCommasSpacesAndTabs) {
  const std::string with_byte_order_mark = std::string("\xef\xbb\xbf") + "1,+2.5,-3\n4,5,6";
  for (const std::string& text :
       {std::string("1,2.5,-3\n4,5,6\n"), std::string("1 2.5 -3\n4 5 6"),
        std::string("1\t2.5\t-3\r\n4\t5\t6\r\n"), std::string(" 1 , 2.5,-3 \n\n  4,5 ,6  \n"),
        with_byte_order_mark}) {
    const Table table = parse_csv(text, "x.csv", 3);
    EXPECT_EQ(table.rows, 2);
    EXPECT_EQ(table.columns, 3);
    EXPECT_THAT(table.values, ElementsAre(1, 2.5, -3, 4, 5, 6)) << text;
  }
}

TEST(Csv, SkipsHeaderAndComments) {
  const Table table = parse_csv("# made by hand\nfirst,second\n1,2 # one\n#3,4\n5,6\n", "x.csv");
  EXPECT_EQ(table.rows, 2);
  EXPECT_THAT(table.values, ElementsAre(1, 2, 5, 6));
}

TEST(Csv, OneColumn) { EXPECT_EQ(parse_csv("1\n2\n3\n", "x.csv").rows, 3); }

TEST(Csv, NamesLineAndColumnOfABadNumber) {
  EXPECT_THAT(refusal_of("x,y\n1,2\n3,four\n").problem(), "x.csv:3: 'four' in column 2");
  EXPECT_THAT(refusal_of("1,\n").problem(), "x.csv:1: '' in column 2");
  EXPECT_THAT(refusal_of("1,2,x\n").problem(), "x.csv:1: 'x' in column 3");  // not a header
  EXPECT_THAT(refusal_of("1 2\n0x10 1\n").problem(), "x.csv:2: '0x10' in column 1");
  EXPECT_THAT(refusal_of("1 2\n1.5e 1\n").problem(), HasSubstr("'1.5e'"));
  EXPECT_THAT(refusal_of("1;2\n1;2\n").problem(), HasSubstr("x.csv:2: '1;2'"));
  EXPECT_THAT(refusal_of("1,2\n+-1,2\n").problem(), HasSubstr("'+-1'"));
}

TEST(Csv, RefusesWhatIsNotFinite) {
  for (const char* field : {"nan", "NaN", "-inf", "Infinity", "1e39", "-1e999"}) {
    const Error error = refusal_of(std::string("1,2\n3,") + field + "\n");
    EXPECT_THAT(error.problem(), HasSubstr("x.csv:2: ")) << field;
    EXPECT_THAT(error.problem(), HasSubstr("column 2")) << field;
    // Nor is a first line of such a header.
    EXPECT_THAT(refusal_of(std::string(field) + "\n1\n").problem(), HasSubstr("x.csv:1: "));
  }
}

TEST(Csv, TooSmallIsZero) {
  EXPECT_THAT(parse_csv("1e-60,-1e-45\n", "x.csv").values, ElementsAre(0, -0x1p-149f));
}

TEST(Csv, ReportsRaggedRows) {
  const Error error = refusal_of("# a\n1,2,3\n\n1,2\n");
  EXPECT_EQ(error.problem(), "x.csv:4: 2 numbers");
  EXPECT_EQ(error.expected(), "3 numbers, as in line 2");
}

TEST(Csv, ReportsTheWrongNumberOfColumns) {
  const Error error = refusal_of("1,2,3\n4,5,6\n", 8);
  EXPECT_EQ(error.problem(), "x.csv:1: 3 numbers");
  EXPECT_EQ(error.expected(), "8 numbers per row");
}

TEST(Csv, RefusesAFileWithoutRows) {
  for (const char* text : {"", "\n\n", "# nothing\n", "a,b,c\n", ",,,\n"}) {
    EXPECT_THAT(refusal_of(text).problem(), HasSubstr("no rows"));
  }
}

TEST(Csv, MessagesShowHostileFieldsHarmlessly) {
  const Error error = refusal_of("1\n\x1b[31m" + std::string(1000, 'x') + "\n");
  EXPECT_LT(error.problem().size(), 100u);
  EXPECT_EQ(error.problem().find('\x1b'), std::string::npos);
}

TEST(Csv, WritesWhatReadsBackExactly) {
  Table table{.rows = 100, .columns = 5, .values = {}};
  RandomStream random(3, Purpose::test_data, 0, 0);
  while (table.values.size() < 500) {
    const float value = std::bit_cast<float>(random.next());
    if (std::isfinite(value)) table.values.push_back(value);
  }
  const Table again = parse_csv(to_csv(table), "x.csv", 5);
  EXPECT_EQ(again.values, table.values);
  EXPECT_EQ(to_csv({.rows = 2, .columns = 2, .values = {1, 0.1f, -2.5f, 1e-20f}}),
            "1,0.1\n-2.5,1e-20\n");
}

TEST(Csv, ColumnsOfWholeNumbers) {
  const RowPattern pattern{.whole = 1, .real = 2};
  const std::string text = "token,x,y,token,x,y\n3,0.5,1,-1,2,3\n+2147483647,1,2,1.5e1,3,4.5\n";
  const Table table = parse_csv(text, "x.csv", 6, pattern);
  EXPECT_THAT(table.whole, ElementsAre(3, -1, 2147483647, 15));
  EXPECT_THAT(table.values, ElementsAre(0.5, 1, 2, 3, 1, 2, 3, 4.5));
  EXPECT_EQ(to_csv(table), "3,0.5,1,-1,2,3\n2147483647,1,2,15,3,4.5\n");
  for (const char* field : {"2.5", "2147483648", "-3e9", "1e999", "nan", "inf"}) {
    const Error error = refusal_of(fmt::format("1,2,3\n{},5,6\n", field), 0, pattern);
    EXPECT_EQ(error.problem(), fmt::format("x.csv:2: '{}' in column 1", field));
    EXPECT_THAT(error.expected(), HasSubstr("whole number"));
  }
  EXPECT_EQ(refusal_of("1,2,3\nx,5,6\n", 0, pattern).expected(), "a number");
}

}  // namespace
}  // namespace posattn
