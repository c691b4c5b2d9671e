#include "posattn/programs/form/function_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "posattn/base/error.h"
#include "posattn/base/random.h"

namespace posattn {
namespace {

using ::testing::HasSubstr;

struct Request {
  const CurvedFunction* function;
  double low, high, tolerance;
};

Request random_request(const CurvedFunction& function, RandomStream& random) {
  const bool positive = !function.is_defined(-1, 1);
  double low = random.uniform(-5, 5), high = low + std::exp(random.uniform(-3, 1.5));
  if (positive) {
    low = std::exp(random.uniform(-4, 2));
    high = low * std::exp(random.uniform(0.1, 4));
    if (std::string_view(function.name) == "sqrt" && random.below(3) == 0) low = 0;
    if (std::string_view(function.name) == "reciprocal" && random.below(3) == 0) {
      std::swap(low, high);
      low = -low;
      high = -high;
    }
  }
  return {&function, low, high, std::pow(10.0, random.uniform(-4, -0.5))};
}

// On a dense grid, at the knots, and at random places.
TEST(FunctionTable, ErrorsAreNeverAboveWhatIsStated) {
  for (const CurvedFunction& function : curved_functions()) {
    RandomStream random(3, Purpose::test_data, 0, static_cast<uint32_t>(function.name[0]));
    for (int k = 0; k < 40; ++k) {
      const Request request = random_request(function, random);
      SCOPED_TRACE(::testing::Message() << function.name << " on [" << request.low << ", "
                                        << request.high << "] within " << request.tolerance);
      const auto table =
          function_table(function.name, request.low, request.high, request.tolerance);
      EXPECT_LE(table->error, request.tolerance);
      EXPECT_TRUE(std::ranges::is_sorted(table->knots));
      double largest = 0;
      const auto look = [&](double x) {
        largest = std::max(largest, std::abs((*table)(x)-function.value(x)));
      };
      constexpr int grid = 4000;
      for (int p = 0; p <= grid; ++p) {
        look(std::min(request.high, request.low + p * (request.high - request.low) / grid));
        look(random.uniform(request.low, request.high));
      }
      for (const double x : table->knots) look(x);
      EXPECT_LE(largest, table->error);
      EXPECT_GT(largest, 0.8 * table->error);  // no more pieces than are needed
    }
  }
}

// A hundred times closer takes ten times the pieces.
TEST(FunctionTable, PiecesGrowWithTheRootOfTheTolerance) {
  for (const CurvedFunction& function : curved_functions()) {
    const size_t coarse = function_table(function.name, 0.1, 4, 1e-3)->pieces();
    const size_t fine = function_table(function.name, 0.1, 4, 1e-5)->pieces();
    EXPECT_GT(fine, 9 * coarse - 9) << function.name;
    EXPECT_LE(fine, 10 * coarse) << function.name;
  }
}

TEST(FunctionTable, BreakPointsAreWhereTheFunctionBends) {
  const auto table = function_table("exp", -10, 0, 1e-3);
  const auto& knots = table->knots;
  EXPECT_GT(knots[1] - knots[0], 5 * (knots[knots.size() - 1] - knots[knots.size() - 2]));
  for (size_t k = 1; k + 1 < knots.size(); ++k) {
    EXPECT_EQ(knots[k], static_cast<double>(static_cast<float>(knots[k])));
  }
  EXPECT_EQ(table->flattest_knot(), 0u);
  EXPECT_EQ(function_table("log", 1, 9, 1e-3)->flattest_knot(),
            function_table("log", 1, 9, 1e-3)->pieces());
  const auto square = function_table("square", -3, 2, 1e-2);
  EXPECT_NEAR(square->knots[square->flattest_knot()], 0, 0.3);
}

// Also where x lies at the edge and its error leads beyond.
TEST(FunctionTable, ErrorOfAnArgumentThatIsOff) {
  RandomStream random(4, Purpose::test_data, 0, 0);
  for (const CurvedFunction& function : curved_functions()) {
    for (int k = 0; k < 200; ++k) {
      const Request request = random_request(function, random);
      const auto table = function_table(function.name, request.low, request.high, 0.3);
      const double x =
          random.below(4) == 0 ? request.low : random.uniform(request.low, request.high);
      const double e = random.uniform(0, 0.2) * (request.high - request.low);
      const double allowed = table->error_at(x, e);
      for (int p = -20; p <= 20; ++p) {
        EXPECT_LE(std::abs((*table)(x + e * p / 20) - function.value(x)), allowed * (1 + 1e-12));
      }
    }
  }
}

TEST(FunctionTable, EqualTablesAreOne) {
  const auto table = function_table("exp", -1, 1, 0.01);
  EXPECT_EQ(table, function_table("exp", -1, 1, 0.01));
  EXPECT_NE(table, function_table("exp", -1, 1, 0.02));
}

TEST(FunctionTable, RefusesWhatCannotBe) {
  const auto message = [](const char* name, double low, double high, double tolerance) {
    try {
      function_table(name, low, high, tolerance);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(message("log", 0, 1, 0.1), HasSubstr("log on [0, 1] within 0.1"));
  EXPECT_THAT(message("log", 0, 1, 0.1), HasSubstr("a range above 0"));
  EXPECT_THAT(message("reciprocal", -1, 1, 0.1), HasSubstr("on one side of 0"));
  EXPECT_THAT(message("sqrt", -1, 1, 0.1), HasSubstr("from 0 on"));
  EXPECT_THAT(message("exp", 0, 100, 0.1), HasSubstr("up to 80"));
  EXPECT_THAT(message("exp", 1, 1, 0.1), HasSubstr("the smaller number first"));
  EXPECT_THAT(message("exp", 0, 1, 0), HasSubstr("a tolerance above 0"));
  EXPECT_THAT(message("exp", 0, 20, 1e-9), HasSubstr("at most 4096 pieces"));
  EXPECT_THAT(message("sine", 0, 1, 1e-9), HasSubstr("unknown function 'sine'"));
}

}  // namespace
}  // namespace posattn
