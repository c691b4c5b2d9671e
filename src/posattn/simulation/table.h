// A function of one number as a table of straight pieces, fitted to the arguments that occur.
//
// K pieces of the best places have a root mean square error of about K^-2. Knots lie with a density
// of (p f''^2 w^2)^(1/5) for arguments of density p, errors counted with weight w; the values at
// the knots are those of least squares, not those of the function. Beyond its ends a table goes on
// straight. That of the softplus is zero to the left and rises by one to the right.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace posattn::simulation {

// A piecewise-linear function as an MLP holds it: a constant and hinges, each a ReLU:
// slope relu(direction (z - knot)), direction 1 or -1
struct Hinge {
  double direction = 1, knot = 0, slope = 0;
};

struct HingeSum {
  double constant = 0;
  std::vector<Hinge> hinges;

  double operator()(double z) const {
    double sum = constant;
    for (const Hinge& hinge : hinges) {
      sum += hinge.slope * std::max(0.0, hinge.direction * (z - hinge.knot));
    }
    return sum;
  }
};

enum class Function {
  square,
  logarithm,  // an error of log z is multiplied by z later
  softplus,   // log(1 + e^z)
  exponential,
};
double exactly(Function function, double z);

// The arguments of a table on calibration inputs: some of them, in rising order, with the least and
// the greatest.
struct Arguments {
  std::vector<double> sorted;

  explicit Arguments(std::vector<double> all);
  double least() const { return sorted.front(); }
  double greatest() const { return sorted.back(); }
};

// Arguments as they come, of which it keeps a fair sample and both ends. Squared errors at an
// argument count `weight` times, at most once: so often it is kept.
class ArgumentSample {
 public:
  void add(double z, double weight = 1);
  Arguments arguments() &&;

 private:
  uint64_t draw();  // of 32 bits

  std::vector<double> kept_;
  uint64_t count_ = 0, random_ = 1;
  double least_ = std::numeric_limits<double>::infinity(), greatest_ = -least_;
};

struct Interval {
  double low = 0, high = 0;
};
// `margin` times as wide about the same middle.
Interval widened(const Arguments& arguments, double margin);

class FittedTable {
 public:
  // A tenth of the pieces' density is spread over the range without regard to the arguments. The
  // last piece of a softplus is the straight line without end.
  FittedTable(Function function, Interval range, int pieces, const Arguments& arguments);

  double operator()(double z) const;
  // Whether the table says nothing about z. Left of a softplus's is next to zero, as it should, and
  // to the right straight if the table reaches as far there.
  bool is_outside(double z) const;
  // The largest difference from the function in the range, and of a softplus anywhere. Of a
  // logarithm it is that of the values: the largest z (exp(difference) - 1).
  double largest_error() const;
  // The same of the pieces that an interval meets.
  double largest_error(Interval interval) const;
  // The same function by as many hinges as pieces. They point away from the flattest knot, so that
  // those of a convex function all have one sign and nothing cancels in fp32.
  HingeSum hinges() const;
  Interval range() const { return {knots_.front(), knots_.back()}; }

 private:
  bool is_softplus() const { return function_ == Function::softplus; }
  bool is_straight_at_last() const { return knots_.back() >= -knots_.front(); }
  std::vector<double> slopes() const;          // of the pieces, each from its knot on
  std::vector<double> largest_errors() const;  // of the pieces

  Function function_;
  std::vector<double> knots_, values_, errors_;
};

}  // namespace posattn::simulation
