#include "posattn/programs/form/function_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "posattn/base/error.h"

namespace posattn {
namespace {

constexpr size_t most_pieces = 4096;

bool everywhere(double, double) { return true; }

// How far the chord from a to b is from the function, at most.
double chord_distance(const CurvedFunction& f, double a, double b) {
  const double at_a = f.value(a), slope = (f.value(b) - at_a) / (b - a);
  const double x = std::clamp(f.tangent(a, b, slope), a, b);
  return std::abs(at_a + slope * (x - a) - f.value(x));
}

// Break points from low to high, as far apart as chords within `distance` allow: closer where the
// function bends more. Inner ones are fp32 numbers, as the network stores them. Empty: too many.
std::vector<double> break_points(const CurvedFunction& f, double low, double high,
                                 double distance) {
  std::vector<double> knots = {low};
  while (knots.back() < high) {
    if (knots.size() > most_pieces) return {};
    const double from = knots.back();
    double good = from, bad = high;
    if (chord_distance(f, from, high) <= distance) good = high;
    for (int step = 0; step < 60 && good < high; ++step) {
      const double middle = good + (bad - good) / 2;
      (chord_distance(f, from, middle) <= distance ? good : bad) = middle;
    }
    if (good < high) {
      float stored = static_cast<float>(good);
      if (stored > good) stored = std::nextafter(stored, -INFINITY);
      good = static_cast<double>(stored);
    }
    if (good <= from) return {};  // closer than fp32 numbers are
    knots.push_back(good);
  }
  return knots;
}

// Chords lie on one side of the function; moved by half their distance they lie on both.
FunctionTable table_of(const CurvedFunction& f, std::vector<double> knots) {
  FunctionTable table;
  table.function = &f;
  table.low = knots.front();
  table.high = knots.back();
  double distance = 0;
  for (size_t k = 0; k + 1 < knots.size(); ++k) {
    distance = std::max(distance, chord_distance(f, knots[k], knots[k + 1]));
  }
  const double middle = table.low + (table.high - table.low) / 2;
  const double chord = (f.value(table.low) + f.value(table.high)) / 2;
  const double half = (chord > f.value(middle) ? -0.5 : 0.5) * distance;
  double largest = 0;
  for (const double x : knots) {
    table.values.push_back(f.value(x) + half);
    largest = std::max(largest, std::abs(table.values.back()));
  }
  table.knots = std::move(knots);
  table.error = distance / 2 + 1e-15 * largest;  // what computing it in double may add
  return table;
}

FunctionTable smallest_table(const CurvedFunction& f, double low, double high, double tolerance) {
  const auto too_fine = [&] {
    return Error(ExitCode::configuration,
                 fmt::format("{} on [{}, {}] within {}", f.name, low, high, tolerance),
                 fmt::format("a table of at most {} pieces", most_pieces),
                 "widen the tolerance or narrow the range");
  };
  double distance = 2 * tolerance;
  std::vector<double> knots = break_points(f, low, high, distance);
  if (knots.empty()) throw too_fine();
  // The same number of pieces can come closer than asked for, as the last piece need not be shorter
  // than the others.
  double from = 0;
  for (int step = 0; step < 20; ++step) {
    const double middle = (from + distance) / 2;
    std::vector<double> closer = break_points(f, low, high, middle);
    if (!closer.empty() && closer.size() == knots.size()) {
      knots = std::move(closer);
      distance = middle;
    } else {
      from = middle;
    }
  }
  FunctionTable table = table_of(f, std::move(knots));
  if (!(table.error <= tolerance)) throw too_fine();
  return table;
}

}  // namespace

const std::vector<CurvedFunction>& curved_functions() {
  static const std::vector<CurvedFunction> all = {
      {"square", [](double x) { return x * x; },
       [](double a, double b, double) { return a + (b - a) / 2; }, everywhere, "anywhere"},
      {"exp", [](double x) { return std::exp(x); },
       [](double, double, double slope) { return std::log(slope); },
       [](double, double high) { return high <= 80; }, "up to 80"},
      {"reciprocal", [](double x) { return 1 / x; },
       [](double a, double b, double) { return std::copysign(std::sqrt(a * b), a); },
       [](double low, double high) { return low > 0 || high < 0; }, "on one side of 0"},
      {"log", [](double x) { return std::log(x); },
       [](double, double, double slope) { return 1 / slope; },
       [](double low, double) { return low > 0; }, "above 0"},
      {"sqrt", [](double x) { return std::sqrt(x); },
       [](double, double, double slope) { return 1 / (4 * slope * slope); },
       [](double low, double) { return low >= 0; }, "from 0 on"},
  };
  return all;
}

const CurvedFunction* find_curved_function(std::string_view name) {
  const auto& all = curved_functions();
  const auto found = std::ranges::find(all, name, &CurvedFunction::name);
  return found == all.end() ? nullptr : &*found;
}

double FunctionTable::slope(size_t piece) const {
  return (values[piece + 1] - values[piece]) / (knots[piece + 1] - knots[piece]);
}

size_t FunctionTable::flattest_knot() const {
  // Slopes grow or fall throughout: the flattest knot is an end, or where they change their sign.
  if (std::abs(slope(0)) <= std::abs(slope(pieces() - 1)) && slope(0) * slope(pieces() - 1) >= 0) {
    return 0;
  }
  for (size_t k = 1; k < pieces(); ++k) {
    if (slope(k - 1) * slope(k) <= 0) return k;
  }
  return pieces();
}

double FunctionTable::operator()(double x) const {
  const auto next = std::upper_bound(knots.begin() + 1, knots.end() - 1, x);
  const auto piece = static_cast<size_t>(next - knots.begin()) - 1;
  return values[piece] + slope(piece) * (x - knots[piece]);
}

double FunctionTable::error_at(double x, double e) const {
  const double below = std::max(0.0, low - (x - e)), above = std::max(0.0, x + e - high);
  const double here = function->value(x);
  const auto moved = [&](double to) { return std::abs(function->value(to) - here); };
  return error + std::max(moved(std::max(low, x - e)) + below * std::abs(slope(0)),
                          moved(std::min(high, x + e)) + above * std::abs(slope(pieces() - 1)));
}

std::shared_ptr<const FunctionTable> function_table(std::string_view function, double low,
                                                    double high, double tolerance) {
  const CurvedFunction* f = find_curved_function(function);
  if (f == nullptr) {
    std::vector<std::string> known;
    for (const CurvedFunction& each : curved_functions()) known.emplace_back(each.name);
    throw unknown_name(ExitCode::configuration, "function", function, known);
  }
  const auto refuse = [&](std::string expected) {
    return Error(ExitCode::configuration,
                 fmt::format("{} on [{}, {}] within {}", f->name, low, high, tolerance),
                 std::move(expected));
  };
  if (!(low < high) || !std::isfinite(high - low)) throw refuse("the smaller number first");
  if (!f->is_defined(low, high)) throw refuse(fmt::format("a range {}", f->defined));
  if (!(tolerance > 0) || !std::isfinite(tolerance)) throw refuse("a tolerance above 0");
  using Key = std::tuple<const CurvedFunction*, double, double, double>;
  static std::map<Key, std::weak_ptr<const FunctionTable>> known;
  const Key key{f, low, high, tolerance};
  std::shared_ptr<const FunctionTable> table;
#pragma omp critical(posattn_function_tables)
  table = known[key].lock();
  if (table) return table;
  // The table is made without the lock, since that may throw. If two threads make the same one, the
  // second takes the first's.
  auto made = std::make_shared<const FunctionTable>(smallest_table(*f, low, high, tolerance));
#pragma omp critical(posattn_function_tables)
  {
    std::weak_ptr<const FunctionTable>& place = known[key];
    table = place.lock();
    if (!table) place = table = std::move(made);
  }
  return table;
}

}  // namespace posattn
