// Curved functions as tables: straight pieces between break points, which ReLUs compute. A table
// has a range and a proven bound on its error. Each function bends one way only on its range, so
// that the largest distance of a chord from it is where the tangent is parallel.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

namespace posattn {

struct CurvedFunction {
  const char* name;
  double (*value)(double x);
  // Where between a and b the derivative is the slope of the chord.
  double (*tangent)(double a, double b, double slope);
  bool (*is_defined)(double low, double high);
  const char* defined;  // "above 0"
};

// square, exp, reciprocal, log, sqrt.
const std::vector<CurvedFunction>& curved_functions();
const CurvedFunction* find_curved_function(std::string_view name);  // nullptr: none

struct FunctionTable {
  const CurvedFunction* function = nullptr;
  double low = 0, high = 0;
  std::vector<double> knots;   // low first, high last
  std::vector<double> values;  // of the table at the knots
  double error = 0;            // the largest distance from the function

  size_t pieces() const { return knots.size() - 1; }
  double slope(size_t piece) const;
  // Where it is flattest: hinges that point away from there do not cancel each other.
  size_t flattest_knot() const;
  bool contains(double x) const { return x >= low && x <= high; }
  double operator()(double x) const;  // goes on straight beyond the range
  // A bound on the difference between the table's value at x + d, |d| <= e, and the function's at
  // x; it also holds a little beyond the range.
  double error_at(double x, double e) const;
};

// The one with the fewest pieces whose error is at most `tolerance`. Equal tables are one. Throws
// Error(configuration) for a range where the function is not defined, a tolerance that is not above
// zero, and tables of more than 4096 pieces.
std::shared_ptr<const FunctionTable> function_table(std::string_view function, double low,
                                                    double high, double tolerance);

}  // namespace posattn
