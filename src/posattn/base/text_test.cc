#include "posattn/base/text.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "posattn/base/error.h"

namespace posattn {
namespace {

template <class Action>
std::string usage_message(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "";
}

TEST(Text, SplitsAtCommas) {
  using Parts = std::vector<std::string_view>;
  EXPECT_EQ(split_at_commas("a,bc"), (Parts{"a", "bc"}));
  EXPECT_EQ(split_at_commas(",a,"), (Parts{"", "a", ""}));
  EXPECT_EQ(split_at_commas(""), Parts{""});
}

TEST(Text, NumbersAreParsedWhole) {
  EXPECT_EQ(parse_integer("-12", "x"), -12);
  EXPECT_EQ(parse_number("2.5e3", "x"), 2500);
  for (const char* text : {"", " 1", "1 ", "1x", "1.5", "+1", "99999999999999999999", "0x10"}) {
    EXPECT_NE(usage_message([&] { parse_integer(text, "--n"); }), "") << text;
  }
  for (const char* text : {"", " 1", "1,", "inf", "nan", "1e999", "one"}) {
    EXPECT_NE(usage_message([&] { parse_number(text, "--x"); }), "") << text;
  }
  EXPECT_EQ(usage_message([] { parse_number("one", "--range"); }),
            "--range: 'one'\n  expected a finite number");
}

TEST(Text, Scales) {
  EXPECT_EQ(parse_scales("1..3,1000,0.5"), (std::vector<double>{1, 2, 3, 1000, 0.5}));
  EXPECT_EQ(parse_scales("2"), std::vector<double>{2});
  for (const char* text :
       {"", ",", "1,", "1,,2", "0", "-1", "0..3", "3..1", "1..", "..3", "1..x", "1...3", "1.5..3",
        "1e13", "1..1e18", "1..1000000000000", "inf", "2,2.0", "1..3,2"}) {
    EXPECT_NE(usage_message([&] { parse_scales(text); }), "") << text;
  }
}

TEST(Text, ScaleGivenTwice) {
  EXPECT_EQ(parse_numbers("-1,0,0.5,4..5", "x"), (std::vector<double>{-1, 0, 0.5, 4, 5}));
  EXPECT_NE(usage_message([] { parse_numbers("0,-0", "x"); }), "");
  EXPECT_NE(usage_message([] { parse_scales("1..3,2"); }).find("2 appears twice"),
            std::string::npos);
}

TEST(Text, Lengths) {
  EXPECT_EQ(parse_lengths("8,16..18"), (std::vector<int>{8, 16, 17, 18}));
  for (const char* text : {"", "0", "0..3", "-1", "1.5", "8,8", "1048577"}) {
    EXPECT_NE(usage_message([&] { parse_lengths(text); }), "") << text;
  }
  EXPECT_NE(usage_message([] { parse_lengths("0"); }).find("at least 1"), std::string::npos);
}

TEST(Text, Seeds) {
  EXPECT_EQ(parse_seeds("0..2,12,7"), (std::vector<uint64_t>{0, 1, 2, 12, 7}));
  EXPECT_EQ(parse_seeds("8999999999999999999..9000000000000000000").size(), 2u);
  EXPECT_EQ(parse_seeds("0..9999").size(), 10000u);
  for (const char* text :
       {"", "-1", "1.5", "0..1e18", "0..10000", "0..18446744073709551615", "0..9999,20000", "1,1",
        "0..3,2", "18446744073709551616", "18446744073709551615", "9223372036854775807",
        "9000000000000000000..9000000000000000001"}) {
    EXPECT_NE(usage_message([&] { parse_seeds(text); }), "") << text;
  }
  EXPECT_NE(usage_message([] { parse_seeds("0..3,2"); }).find("2 appears twice"),
            std::string::npos);
  EXPECT_NE(
      usage_message([] { parse_seeds("9223372036854775807"); }).find("at most 9000000000000000000"),
      std::string::npos);
}

TEST(Text, PrintableTextHoldsNothingThatATerminalActsUpon) {
  EXPECT_EQ(printable("c \u2264 3\\x"), "c \u2264 3\\x");
  EXPECT_EQ(printable("a\x1b[2J\n\x7f"), "a\\x1b[2J\\x0a\\u007f");
  EXPECT_EQ(printable("a\n\tb", true), "a\n\tb");
  EXPECT_EQ(printable("\u009b1m \u202e."), "\\u009b1m \\u202e.");
  for (const char* broken : {"\xc2", "\x9b", "\xff"}) {
    EXPECT_EQ(printable(broken), fmt::format("\\x{:02x}", static_cast<uint8_t>(*broken)));
  }
  EXPECT_EQ(printable("{\n\t\"a\": \"\u009b\x7f\u00e4\"}", true),  // the same JSON
            "{\n\t\"a\": \"\\u009b\\u007f\u00e4\"}");
  EXPECT_TRUE(is_plain_line(printable("\xc2\x01\u2066\u061c\r")));
}

TEST(Text, PlainLines) {
  for (const char* text :
       {"", "a b", "c \u2264 3, Stra\u00dfe \u03b1\u2192\u03b2", "\u00a0", "\u2027\u202f\u2065"}) {
    EXPECT_TRUE(is_plain_line(text)) << text;
  }
  for (const char* text : {"a\n", "\t", "a\a", "\x1b[31m", "\x7f", "\u0085", "\u009b", "a\u202eb",
                           "\u202a", "\u2066", "\u2069", "\u200f", "\u061c", "\u2028"}) {
    EXPECT_FALSE(is_plain_line(text)) << text;
  }
}

}  // namespace
}  // namespace posattn
