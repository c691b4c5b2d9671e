#include "posattn/simulation/table.h"

#include <cmath>

namespace posattn::simulation {
namespace {

double second_derivative(Function function, double z) {
  switch (function) {
    case Function::square:
      return 2;
    case Function::logarithm:
      return -1 / (z * z);
    case Function::softplus:
      return 1 / (2 + std::exp(z) + std::exp(-z));
    case Function::exponential:
      return std::exp(z);
  }
  return 0;
}

// Where the function rises by `slope`; not a number or infinite where it never does.
double place_of_slope(Function function, double slope) {
  switch (function) {
    case Function::square:
      return slope / 2;
    case Function::logarithm:
      return 1 / slope;
    case Function::softplus:
      return std::log(slope / (1 - slope));
    case Function::exponential:
      return std::log(slope);
  }
  return 0;
}

double error_weight(Function function, double z) { return function == Function::logarithm ? z : 1; }

// The range in narrow cells with the share of arguments in each: what sums over arguments become.
struct Cells {
  std::vector<double> edges, middle, share;
};

Cells make_cells(Function function, Interval range, int pieces, const Arguments& arguments) {
  constexpr int bins = 200;        // of the histogram; each is made of many cells
  constexpr double evenly = 0.1;   // share of the arguments that is taken to be anywhere
  constexpr double far_apart = 8;  // from which ratio of the ends cells grow with the argument
  const int cells_per_bin = std::max(10, pieces / 8);
  const int cells = bins * cells_per_bin;
  const bool geometric = function == Function::logarithm && range.high > far_apart * range.low;
  Cells result;
  for (int k = 0; k <= cells; ++k) {
    const double at = static_cast<double>(k) / cells;
    result.edges.push_back(geometric ? range.low * std::pow(range.high / range.low, at)
                                     : range.low + (range.high - range.low) * at);
  }
  const auto below = [&](double z) {
    return std::ranges::lower_bound(arguments.sorted, z) - arguments.sorted.begin();
  };
  const auto count = static_cast<double>(arguments.sorted.size());
  for (int bin = 0; bin < bins; ++bin) {
    const auto inside =
        below(result.edges[(bin + 1) * cells_per_bin]) - below(result.edges[bin * cells_per_bin]);
    const double mass = (1 - evenly) * static_cast<double>(inside) / count + evenly / bins;
    for (int k = bin * cells_per_bin; k < (bin + 1) * cells_per_bin; ++k) {
      result.middle.push_back((result.edges[k] + result.edges[k + 1]) / 2);
      result.share.push_back(mass / cells_per_bin);
    }
  }
  return result;
}

// Knots that share out the error evenly.
std::vector<double> make_knots(Function function, const Cells& cells, int pieces) {
  std::vector<double> sum = {0};  // of the density up to each edge
  for (size_t k = 0; k < cells.middle.size(); ++k) {
    const double width = cells.edges[k + 1] - cells.edges[k], z = cells.middle[k];
    const double bend = second_derivative(function, z) * error_weight(function, z);
    sum.push_back(sum.back() + width * std::pow(cells.share[k] / width * bend * bend, 0.2));
  }
  std::vector<double> knots = {cells.edges.front()};
  size_t k = 0;
  for (int piece = 1; piece < pieces; ++piece) {
    const double wanted = sum.back() * piece / pieces;
    while (sum[k + 1] < wanted) ++k;
    const double part = (wanted - sum[k]) / (sum[k + 1] - sum[k]);
    knots.push_back(cells.edges[k] + part * (cells.edges[k + 1] - cells.edges[k]));
  }
  knots.push_back(cells.edges.back());
  return knots;
}

// Values at the knots that leave the least mean square error: a system with three diagonals, since
// a piece knows two knots only.
std::vector<double> fit_values(Function function, const Cells& cells,
                               const std::vector<double>& knots) {
  const size_t count = knots.size();
  std::vector<double> diagonal(count), off_diagonal(count), right(count);
  size_t piece = 0;
  for (size_t k = 0; k < cells.middle.size(); ++k) {
    const double z = cells.middle[k];
    while (piece + 2 < count && z > knots[piece + 1]) ++piece;
    const double part = (z - knots[piece]) / (knots[piece + 1] - knots[piece]);
    const double of_error = error_weight(function, z);
    const double weight = cells.share[k] * of_error * of_error, value = exactly(function, z);
    diagonal[piece] += weight * (1 - part) * (1 - part);
    diagonal[piece + 1] += weight * part * part;
    off_diagonal[piece] += weight * part * (1 - part);
    right[piece] += weight * (1 - part) * value;
    right[piece + 1] += weight * part * value;
  }
  // A piece without a cell's middle takes the function's own values.
  const double least = 1e-9 * *std::ranges::max_element(diagonal);
  for (size_t k = 0; k < count; ++k) {
    diagonal[k] += least;
    right[k] += least * exactly(function, knots[k]);
  }
  if (function == Function::softplus) {  // zero from the first knot to the left
    diagonal[0] = 1;
    off_diagonal[0] = right[0] = 0;
  }
  for (size_t k = 1; k < count; ++k) {
    const double factor = off_diagonal[k - 1] / diagonal[k - 1];
    diagonal[k] -= factor * off_diagonal[k - 1];
    right[k] -= factor * right[k - 1];
  }
  for (size_t k = count; k-- > 0;) {
    if (k + 1 < count) right[k] -= off_diagonal[k] * right[k + 1];
    right[k] /= diagonal[k];
  }
  return right;
}

}  // namespace

double exactly(Function function, double z) {
  switch (function) {
    case Function::square:
      return z * z;
    case Function::logarithm:
      return std::log(z);
    case Function::softplus:
      return std::max(z, 0.0) + std::log1p(std::exp(-std::abs(z)));
    case Function::exponential:
      return std::exp(z);
  }
  return 0;
}

Arguments::Arguments(std::vector<double> all) : sorted(std::move(all)) {
  constexpr size_t most = 4001;
  std::ranges::sort(sorted);
  if (sorted.size() <= most) return;
  std::vector<double> some;
  for (size_t k = 0; k < most; ++k) some.push_back(sorted[k * (sorted.size() - 1) / (most - 1)]);
  sorted = std::move(some);
}

uint64_t ArgumentSample::draw() {
  random_ = random_ * 6364136223846793005 + 1442695040888963407;
  return random_ >> 32;
}

void ArgumentSample::add(double z, double weight) {
  constexpr size_t most = 8192;
  least_ = std::min(least_, z);
  greatest_ = std::max(greatest_, z);
  if (weight < 1 && static_cast<double>(draw()) >= std::ldexp(weight, 32)) return;
  ++count_;
  if (kept_.size() < most) return kept_.push_back(z);
  // Each of the numbers so far is as likely to be kept (Vitter's algorithm R).
  const uint64_t place = draw() % count_;
  if (place < most) kept_[place] = z;
}

Arguments ArgumentSample::arguments() && {
  kept_.push_back(least_);
  kept_.push_back(greatest_);
  return Arguments(std::move(kept_));
}

Interval widened(const Arguments& arguments, double margin) {
  const double middle = (arguments.least() + arguments.greatest()) / 2;
  const double half = (arguments.greatest() - arguments.least()) / 2 * margin;
  // Some width, for arguments that are all the same.
  const double least = 1e-6 * std::max(1.0, std::abs(middle));
  return {middle - std::max(half, least), middle + std::max(half, least)};
}

FittedTable::FittedTable(Function function, Interval range, int pieces, const Arguments& arguments)
    : function_(function) {
  if (is_softplus()) --pieces;  // the straight line is one
  const Cells cells = make_cells(function, range, pieces, arguments);
  knots_ = make_knots(function, cells, pieces);
  values_ = fit_values(function, cells, knots_);
  errors_ = largest_errors();
}

double FittedTable::operator()(double z) const {
  if (is_softplus()) {
    if (z <= knots_.front()) return 0;
    if (z >= knots_.back()) return values_.back() + (z - knots_.back());
  }
  const auto above = std::upper_bound(knots_.begin() + 1, knots_.end() - 1, z);
  const auto k = static_cast<size_t>(above - knots_.begin());
  const double slope = (values_[k] - values_[k - 1]) / (knots_[k] - knots_[k - 1]);
  return values_[k - 1] + slope * (z - knots_[k - 1]);
}

bool FittedTable::is_outside(double z) const {
  if (is_softplus()) return z > knots_.back() && !is_straight_at_last();
  return z > knots_.back() || z < knots_.front();
}

std::vector<double> FittedTable::slopes() const {
  std::vector<double> result;
  for (size_t k = 0; k + 1 < knots_.size(); ++k) {
    result.push_back((values_[k + 1] - values_[k]) / (knots_[k + 1] - knots_[k]));
  }
  if (is_softplus()) result.push_back(1);
  return result;
}

// The function bends one way, so that a piece is farthest from it at an end or where both rise
// alike.
std::vector<double> FittedTable::largest_errors() const {
  const std::vector<double> slope = slopes();
  const auto error_at = [&](double z) { return std::abs((*this)(z)-exactly(function_, z)); };
  std::vector<double> errors;
  for (size_t k = 0; k + 1 < knots_.size(); ++k) {
    double error = std::max(error_at(knots_[k]), error_at(knots_[k + 1]));
    const double inside = place_of_slope(function_, slope[k]);
    if (inside > knots_[k] && inside < knots_[k + 1]) error = std::max(error, error_at(inside));
    if (function_ == Function::logarithm) error = knots_[k + 1] * std::expm1(error);
    errors.push_back(error);
  }
  if (is_softplus() && is_straight_at_last()) {
    errors.push_back(std::max(error_at(knots_.back()), std::abs(values_.back() - knots_.back())));
  }
  return errors;
}

double FittedTable::largest_error() const { return *std::ranges::max_element(errors_); }

double FittedTable::largest_error(Interval interval) const {
  const auto piece_at = [&](double z) {
    const auto above = std::upper_bound(knots_.begin() + 1, knots_.end(), z);
    return std::min<int64_t>(above - knots_.begin(), static_cast<int64_t>(errors_.size())) - 1;
  };
  return *std::max_element(errors_.begin() + piece_at(interval.low),
                           errors_.begin() + piece_at(interval.high) + 1);
}

HingeSum FittedTable::hinges() const {
  const std::vector<double> slope = slopes();
  const int count = static_cast<int>(slope.size());
  int flattest = 0;  // a knot; that of a softplus is the first, left of which it is zero
  if (!is_softplus() && count > 1) {
    flattest = 1;
    for (int k = 2; k < count; ++k) {
      const auto steepness = [&](int knot) {
        return std::abs(slope[knot - 1]) + std::abs(slope[knot]);
      };
      if (steepness(k) < steepness(flattest)) flattest = k;
    }
  }
  HingeSum result{values_[flattest], {}};
  for (int k = flattest; k < count; ++k) {
    const double before = k > flattest ? slope[k - 1] : 0;
    result.hinges.push_back({1, knots_[k], slope[k] - before});
  }
  for (int k = flattest - 1; k >= 0; --k) {
    const double before = k + 1 < flattest ? slope[k + 1] : 0;
    result.hinges.push_back({-1, knots_[k + 1], before - slope[k]});
  }
  return result;
}

}  // namespace posattn::simulation
