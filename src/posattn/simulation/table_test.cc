#include "posattn/simulation/table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "posattn/base/random.h"

namespace posattn::simulation {
namespace {

struct Case {
  Function function;
  Interval range;
};
const Case cases[] = {{Function::square, {-3, 4}},
                      {Function::exponential, {-3, 1}},
                      {Function::softplus, {-12, 4}},
                      {Function::logarithm, {0.1, 1.1}}};

// Arguments in the middle half of the range.
Arguments arguments_in(Interval range) {
  RandomStream random(2, Purpose::test_data, 0, 0);
  std::vector<double> all(20000);
  for (double& z : all) z = range.low + (range.high - range.low) * (1 + 2 * random.uniform()) / 4;
  return Arguments(std::move(all));
}

double error_of(const FittedTable& table, Function function, const Arguments& arguments) {
  double sum = 0;
  for (const double z : arguments.sorted) {
    const double error = table(z) - exactly(function, z);
    sum += error * error;
  }
  return std::sqrt(sum / static_cast<double>(arguments.sorted.size()));
}

TEST(FittedTable, ErrorFallsWithTheSquareOfItsSize) {
  for (const auto& [function, range] : cases) {
    SCOPED_TRACE(static_cast<int>(function));
    const Arguments arguments = arguments_in(range);
    const auto error = [&, f = function, r = range](int pieces) {
      return error_of(FittedTable(f, r, pieces, arguments), f, arguments);
    };
    for (const int pieces : {8, 32, 128}) {
      EXPECT_NEAR(std::log2(error(pieces) / error(4 * pieces)), 4, 0.5) << pieces;
    }
  }
}

TEST(FittedTable, IsCloserThanEvenPiecesThroughTheFunction) {
  for (const auto& [function, range] : cases) {
    const int pieces = 32;
    const Arguments arguments = arguments_in(range);
    double sum = 0;  // of the errors of straight lines between even knots
    const double step = (range.high - range.low) / pieces;
    for (const double z : arguments.sorted) {
      const double left = range.low + step * std::floor((z - range.low) / step);
      const double below = exactly(function, left), above = exactly(function, left + step);
      const double error = below + (above - below) * (z - left) / step - exactly(function, z);
      sum += error * error;
    }
    const double even = std::sqrt(sum / static_cast<double>(arguments.sorted.size()));
    EXPECT_LT(error_of(FittedTable(function, range, pieces, arguments), function, arguments),
              even / 2);
  }
}

TEST(FittedTable, HingesAreTheSameFunction) {
  for (const auto& [function, range] : cases) {
    for (const int pieces : {function == Function::softplus ? 2 : 1, 4, 33}) {
      const FittedTable table(function, range, pieces, arguments_in(range));
      const HingeSum sum = table.hinges();
      EXPECT_EQ(sum.hinges.size(), pieces);
      const double width = range.high - range.low;
      // A single piece has a hinge at its left end, and is constant before it.
      const double first = pieces == 1 ? range.low : range.low - width;
      for (double z = first; z < range.high + width; z += width / 100) {
        EXPECT_NEAR(sum(z), table(z), 1e-9 * (1 + std::abs(table(z))));
      }
    }
  }
}

TEST(FittedTable, HingesOfOneSignCancelNothing) {
  for (const auto& [function, range] : cases) {
    const HingeSum sum = FittedTable(function, range, 64, arguments_in(range)).hinges();
    const bool convex = function != Function::logarithm;
    const auto wrong = std::ranges::count_if(sum.hinges, [&, c = convex](const Hinge& hinge) {
      return c ? hinge.slope < 0 : hinge.slope > 0;
    });
    // The one next to the flattest knot may have the small slope that is left there.
    EXPECT_LE(wrong, 1);
  }
}

TEST(FittedTable, KnowsWhatIsOutside) {
  const FittedTable square(Function::square, {-1, 1}, 8, arguments_in({-1, 1}));
  EXPECT_FALSE(square.is_outside(-1));
  EXPECT_TRUE(square.is_outside(-1.01));
  EXPECT_TRUE(square.is_outside(1.01));
  const FittedTable softplus(Function::softplus, {-9, 3}, 8, arguments_in({-9, 3}));
  EXPECT_FALSE(softplus.is_outside(-100));
  EXPECT_EQ(softplus(-100), 0);
  EXPECT_TRUE(softplus.is_outside(3.01));
  EXPECT_FALSE(FittedTable(Function::softplus, {-9, 9}, 8, arguments_in({-9, 9})).is_outside(100));
  EXPECT_DOUBLE_EQ(softplus(100) - softplus(50), 50);
}

TEST(FittedTable, KnowsItsLargestError) {
  for (const auto& [function, range] : cases) {
    for (const int pieces : {4, 32}) {
      const FittedTable table(function, range, pieces, arguments_in(range));
      double largest = 0;
      constexpr int steps = 100'000;
      for (int k = 0; k <= steps; ++k) {
        const double z = range.low + (range.high - range.low) * k / steps;
        const double error = std::abs(table(z) - exactly(function, z));
        largest =
            std::max(largest, function == Function::logarithm ? z * std::expm1(error) : error);
      }
      EXPECT_GE(table.largest_error(), largest * (1 - 1e-9));
      // Of an interval: of all numbers, and of one.
      EXPECT_EQ(table.largest_error({-1e9, 1e9}), table.largest_error());
      for (int k = 0; k < 50; ++k) {
        const auto [low, high] = table.range();
        const double z = low + (high - low) * k / 49;
        const double error = std::abs(table(z) - exactly(function, z));
        EXPECT_GE(table.largest_error({z, z}),
                  (function == Function::logarithm ? z * std::expm1(error) : error) * (1 - 1e-9));
      }
      // A logarithm's is that of a piece times the piece's greatest argument.
      EXPECT_LT(table.largest_error(), largest * (function == Function::logarithm ? 3 : 1.01));
    }
  }
}

TEST(ArgumentSample, KeepsWhatCounts) {
  ArgumentSample sample;
  for (int k = 0; k < 100'000; ++k) {
    sample.add(0.5 + k % 2, k % 2 == 0 ? 0.25 : 1);
  }
  sample.add(9, 0);
  const Arguments arguments = std::move(sample).arguments();
  EXPECT_EQ(arguments.greatest(), 9);
  EXPECT_EQ(arguments.least(), 0.5);
  const auto few = std::ranges::count(arguments.sorted, 0.5);
  EXPECT_NEAR(static_cast<double>(few) / static_cast<double>(arguments.sorted.size()), 0.2, 0.02);
}

TEST(Arguments, KeepTheirEnds) {
  std::vector<double> all(10000);
  for (size_t k = 0; k < all.size(); ++k) all[k] = static_cast<double>((k * 7919) % all.size());
  const Arguments arguments(all);
  EXPECT_EQ(arguments.least(), 0);
  EXPECT_EQ(arguments.greatest(), 9999);
  EXPECT_TRUE(std::ranges::is_sorted(arguments.sorted));
  const Interval wide = widened(arguments, 2);
  EXPECT_DOUBLE_EQ(wide.high - wide.low, 2 * 9999);
  const Interval single = widened(Arguments({5}), 2);
  EXPECT_LT(single.low, 5);
  EXPECT_GT(single.high, 5);
}

}  // namespace
}  // namespace posattn::simulation
