#include "posattn/simulation/table.h"

#include <cmath>

namespace posattn::simulation {
namespace {

double second_derivative(Function function, double z) {
  if (function == Function::square) return 2;
  return function == Function::exponential ? std::exp(z) : -1 / (z * z);
}

double error_weight(Function function, double z) {
  return function == Function::weighted_logarithm ? z : 1;
}

// The range in narrow cells with the share of arguments in each: what sums over arguments become.
struct Cells {
  std::vector<double> edges, middle, share;
};

Cells make_cells(Function function, Interval range, int pieces, const Arguments& arguments) {
  constexpr int bins = 200;        // of the histogram; each is made of many cells
  constexpr double evenly = 0.1;   // share of the arguments that is taken to be anywhere
  constexpr double far_apart = 8;  // from which ratio of the ends cells grow with the argument
  const int cells_per_bin = std::max(20, pieces / 8);
  const int cells = bins * cells_per_bin;
  const bool geometric =
      (function == Function::logarithm || function == Function::weighted_logarithm) &&
      range.high > far_apart * range.low;
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
  if (function == Function::square) return z * z;
  return function == Function::exponential ? std::exp(z) : std::log(z);
}

Arguments::Arguments(std::vector<double> all) : sorted(std::move(all)) {
  constexpr size_t most = 4001;
  std::ranges::sort(sorted);
  if (sorted.size() <= most) return;
  std::vector<double> some;
  for (size_t k = 0; k < most; ++k) some.push_back(sorted[k * (sorted.size() - 1) / (most - 1)]);
  sorted = std::move(some);
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
  const Cells cells = make_cells(function, range, pieces, arguments);
  knots_ = make_knots(function, cells, pieces);
  values_ = fit_values(function, cells, knots_);
}

double FittedTable::operator()(double z) const {
  if (is_exponential() && z <= knots_.front()) return values_.front();
  const auto above = std::upper_bound(knots_.begin() + 1, knots_.end() - 1, z);
  const auto k = static_cast<size_t>(above - knots_.begin());
  const double slope = (values_[k] - values_[k - 1]) / (knots_[k] - knots_[k - 1]);
  return values_[k - 1] + slope * (z - knots_[k - 1]);
}

bool FittedTable::is_outside(double z) const {
  return z > knots_.back() || (z < knots_.front() && !is_exponential());
}

HingeSum FittedTable::hinges() const {
  const int count = pieces();
  std::vector<double> slopes(count);
  for (int k = 0; k < count; ++k) {
    slopes[k] = (values_[k + 1] - values_[k]) / (knots_[k + 1] - knots_[k]);
  }
  int flattest = 0;  // a knot; that of an exponential is the first, left of which it is constant
  if (!is_exponential() && count > 1) {
    flattest = 1;
    for (int k = 2; k < count; ++k) {
      const auto steepness = [&](int knot) {
        return std::abs(slopes[knot - 1]) + std::abs(slopes[knot]);
      };
      if (steepness(k) < steepness(flattest)) flattest = k;
    }
  }
  HingeSum result{values_[flattest], {}};
  for (int k = flattest; k < count; ++k) {
    const double before = k > flattest ? slopes[k - 1] : 0;
    result.hinges.push_back({1, knots_[k], slopes[k] - before});
  }
  for (int k = flattest - 1; k >= 0; --k) {
    const double before = k + 1 < flattest ? slopes[k + 1] : 0;
    result.hinges.push_back({-1, knots_[k + 1], before - slopes[k]});
  }
  return result;
}

}  // namespace posattn::simulation
