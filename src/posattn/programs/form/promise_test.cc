#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "posattn/base/error.h"
#include "posattn/programs/form/builder.h"
#include "posattn/programs/form/static_program.h"

namespace posattn {
namespace {

using testing::HasSubstr;
using Values = std::vector<double>;

TEST(Promise, WhatIsDrawnKeepsIt) {
  RandomStream random(4, Purpose::test_data, 0, 0);
  for (const Promise promise :
       {Promise::same, Promise::permutation, Promise::list, Promise::symmetric}) {
    for (const int n : {1, 2, 5, 20}) {
      const int count = promise == Promise::symmetric ? n : 1;
      const WordType type = WordType::integer(-1, n - 1);
      const WordType bits = WordType::bit();
      for (int trial = 0; trial < 10; ++trial) {
        const Values columns =
            drawn(promise, promise == Promise::symmetric ? bits : type, n, count, random);
        EXPECT_EQ(columns.size(), static_cast<size_t>(n * count));
        EXPECT_EQ(broken(promise, columns, n), "") << to_string(promise) << " " << n;
      }
    }
  }
}

TEST(Promise, WhatBreaksItIsNamed) {
  EXPECT_THAT(broken(Promise::same, Values{1, 1, 2}, 3),
              HasSubstr("2 and 1, where all must be the same"));
  EXPECT_THAT(broken(Promise::permutation, Values{0, 2, 2}, 3), HasSubstr("2 twice"));
  EXPECT_THAT(broken(Promise::permutation, Values{0, 3, 2}, 3), HasSubstr("3, where"));
  EXPECT_THAT(broken(Promise::list, Values{1, 0, -1}, 3), HasSubstr("reach 1 of 3"));
  EXPECT_THAT(broken(Promise::list, Values{1, 2, 0}, 3), HasSubstr("reach 0 of 3"));
  EXPECT_THAT(broken(Promise::list, Values{1, 1, -1}, 3), HasSubstr("one list"));
  EXPECT_THAT(broken(Promise::symmetric, Values{0, 1, 0, 0}, 2), HasSubstr("symmetric"));
  EXPECT_THAT(broken(Promise::symmetric, Values{1, 0, 0, 0}, 2), HasSubstr("diagonal"));
}

TEST(Promise, TypesMustHoldIt) {
  const auto message = [](const WordType& type, Promise promise) {
    ProgramBuilder program("promised", 4);
    program.input("x", type);
    try {
      program.promise(promise);
    } catch (const Error& error) {
      return error.problem() + ": " + error.expected();
    }
    return std::string();
  };
  EXPECT_EQ(message(WordType::integer(0, 3), Promise::permutation), "");
  EXPECT_THAT(message(WordType::integer(0, 2), Promise::permutation), HasSubstr("int[0..n - 1]"));
  EXPECT_THAT(message(WordType::real(), Promise::same), HasSubstr("whole numbers"));
  EXPECT_THAT(message(WordType::integer(0, 3), Promise::list), HasSubstr("int[-1..n - 1]"));
  EXPECT_THAT(message(WordType::bit(), Promise::symmetric), HasSubstr("an array of 4 words"));
}

}  // namespace
}  // namespace posattn
