// Learning a discrete function in context (arXiv 2310.03016): a sample is x_1, y_1, x_2, y_2, ...
// with x in {-1, 1}^d and y in {-1, 1}, nodes in turn, and each node of an x asks for its y. The
// function is another one in each sample, of one class:
//   conjunction, disjunction   of literals: each coordinate is one with probability 0.15, negated
//                              with 0.15, and not there with 0.7
//   dnf, cnf                   three of them, or of ands, and of ors, with 0.1, 0.1 and 0.8
//   majority                   w.x > 0, w_i is 1 with probability 0.3, else 0
//   threshold                  w.x > b, w as the literals, b from -2.5 to 2.5 in steps of 1
//   halfspace                  w.x > 0.5, w_i a whole number from -3 to 3
//   parity                     whether an odd number of the chosen x_i are 1; each is with 0.5
//   nearest                    the label of the most similar x before; a quarter of the labels, the
//                              first ones, are random and do not count
// Uniform x would seldom fulfil a conjunction: with probability 0.3 (dnf: 0.35) a point is made to
// fulfil it (a chosen one of the three), and a disjunction to fail. A node of an x holds it times
// the range, and a node of a y holds (y, 0, ..., 0).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>

#include "posattn/base/error.h"
#include "posattn/base/text.h"
#include "posattn/tasks/subset.h"
#include "posattn/tasks/task.h"

namespace posattn {
namespace {

using Point = std::vector<int>;  // -1 and 1; of weights also others

enum class FunctionClass {
  conjunction,
  disjunction,
  dnf,
  cnf,
  majority,
  threshold,
  halfspace,
  parity,
  nearest
};

bool is_of_ors(FunctionClass type) {
  return type == FunctionClass::disjunction || type == FunctionClass::cnf;
}
bool has_clauses(FunctionClass type) { return type <= FunctionClass::cnf; }

// A function: weights, and for classes of clauses a row of literals for each clause.
struct Drawn {
  std::vector<Point> weights;
  double bound = 0;
};

int product(const Point& a, const Point& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0);
}

// Whether all literals hold: w.x = |w|_1.
bool all_hold(const Point& literals, const Point& x) {
  return product(literals, x) == product(literals, literals);
}
bool some_holds(const Point& literals, const Point& x) {
  return product(literals, x) > -product(literals, literals);
}

int value_of(FunctionClass type, const Drawn& drawn, const Point& x) {
  const auto fulfilled = [&](bool (*clause)(const Point&, const Point&)) {
    return [&x, clause](const Point& literals) { return clause(literals, x); };
  };
  bool positive = false;
  switch (type) {
    case FunctionClass::conjunction:
    case FunctionClass::dnf:
      positive = std::ranges::any_of(drawn.weights, fulfilled(all_hold));
      break;
    case FunctionClass::disjunction:
    case FunctionClass::cnf:
      positive = std::ranges::all_of(drawn.weights, fulfilled(some_holds));
      break;
    case FunctionClass::parity: {
      int ones = 0;
      for (size_t k = 0; k < x.size(); ++k) ones += x[k] > 0 ? drawn.weights[0][k] : 0;
      positive = ones % 2 == 1;
      break;
    }
    default:
      positive = product(drawn.weights[0], x) > drawn.bound;
  }
  return positive ? 1 : -1;
}

// What a learner knows when it is asked for the label of xs[i]: xs up to i, ys before i.
struct Seen {
  std::vector<Point> xs;
  Point ys;
};

// The label of the most similar x before xs[i], the first of equals; -1 for the first.
int nearest_label(const Seen& seen, size_t i) {
  int best = -1, most = std::numeric_limits<int>::min();
  for (size_t j = 0; j < i; ++j) {
    const int similar = product(seen.xs[i], seen.xs[j]);
    if (similar <= most) continue;
    most = similar;
    best = seen.ys[j];
  }
  return best;
}

// The sign of the sum over examples of y_j x_j . x_i.
Point average(const Seen& seen) {
  Point guesses, weights(seen.xs[0].size());
  for (size_t i = 0; i < seen.xs.size(); ++i) {
    guesses.push_back(product(weights, seen.xs[i]) > 0 ? 1 : -1);
    for (size_t k = 0; k < weights.size(); ++k) weights[k] += seen.ys[i] * seen.xs[i][k];
  }
  return guesses;
}

Point nearest(const Seen& seen) {
  Point guesses;
  for (size_t i = 0; i < seen.xs.size(); ++i) guesses.push_back(nearest_label(seen, i));
  return guesses;
}

// Conjunctions: a literal is out once a positive example contradicts it, and the answer is that of
// the literals left. A disjunction is the negation of a conjunction of negated literals.
Point eliminate(const Seen& seen, bool ors) {
  const int sign = ors ? -1 : 1;
  const size_t d = seen.xs[0].size();
  std::vector<uint8_t> left(2 * d, 1);  // x_k > 0, and x_k < 0
  Point guesses;
  for (size_t i = 0; i < seen.xs.size(); ++i) {
    bool all = true;
    const auto holds = [&](size_t k) { return (sign * seen.xs[i][k % d] > 0) == (k < d); };
    for (size_t k = 0; k < 2 * d; ++k) all = all && (left[k] == 0 || holds(k));
    guesses.push_back(all ? sign : -sign);
    if (seen.ys[i] != sign) continue;
    for (size_t k = 0; k < 2 * d; ++k) left[k] = left[k] != 0 && holds(k);
  }
  return guesses;
}

// Gaussian elimination modulo 2. A row [x | y] is known when it is a sum of rows before; else the
// guess is -1.
Point solve_parity(const Seen& seen) {
  const size_t d = seen.xs[0].size();
  using Row = std::vector<uint8_t>;
  std::map<size_t, Row> reduced;  // by their first place, each without the later rows' first places
  const auto add = [](Row& row, const Row& other) {
    for (size_t k = 0; k < row.size(); ++k) row[k] ^= other[k];
  };
  Point guesses;
  for (size_t i = 0; i < seen.xs.size(); ++i) {
    Row row(d + 1);
    for (size_t k = 0; k < d; ++k) row[k] = seen.xs[i][k] > 0;
    for (const auto& [first, other] : reduced) {
      if (row[first] != 0) add(row, other);
    }
    const auto first = static_cast<size_t>(std::find(row.begin(), row.end() - 1, 1) - row.begin());
    guesses.push_back(first == d && row[d] != 0 ? 1 : -1);
    if (first == d) continue;
    row[d] ^= seen.ys[i] > 0;
    for (auto& [place, other] : reduced) {
      if (other[first] != 0) add(other, row);
    }
    reduced[first] = row;
  }
  return guesses;
}

// "101 1, 011 0, 110 ?": points of ones and zeros for 1 and -1, each with its label. The last one
// is asked for: its label, which no x sees, is 0 in the sample.
class PointsText final : public TaskText {
 public:
  explicit PointsText(int d)
      : d_(static_cast<size_t>(d)),
        form_(fmt::format(
            "points of {} digit{} and their labels, ? for the last, as {} 1, {} 0, {} ?", d,
            d == 1 ? "" : "s", std::string(d_, '1'), std::string(d_, '0'), std::string(d_, '1'))) {}
  std::string_view form() const override { return form_; }
  int length_of(std::string_view line) const override {
    return static_cast<int>(split_at_commas(line).size());
  }
  void read(std::string_view line, int length, const SampleRoom& room) const override {
    const std::vector<std::string_view> points = split_at_commas(line);
    if (std::ssize(points) != length) {
      throw Error(ExitCode::data, fmt::format("{} points", points.size()),
                  fmt::format("{}, as in training", length), form_);
    }
    std::ranges::fill(room.values, 0.0F);
    for (size_t i = 0; i < points.size(); ++i) {
      std::string digits;
      std::ranges::copy_if(points[i], std::back_inserter(digits),
                           [](char c) { return c != ' ' && c != '\t'; });
      const bool asked = i + 1 == points.size();
      if (digits.size() != d_ + 1 || digits.find_first_not_of("01") != (asked ? d_ : digits.npos) ||
          (asked && digits[d_] != '?')) {
        throw Error(ExitCode::data, fmt::format("the point '{}'", printable(points[i])), form_);
      }
      for (size_t k = 0; k < d_ + (asked ? 0 : 1); ++k) {
        room.values[2 * i * d_ + k] = digits[k] == '1' ? 1 : -1;
      }
    }
  }
  // Only the first number of a label is not 0.
  std::string node(int32_t /*token*/, std::span<const float> values) const override {
    std::string digits;
    for (const float value : values) {
      if (value != 0) digits += value > 0 ? '1' : '0';
    }
    return digits.empty() ? "?" : digits;
  }
  std::string answer(int32_t label) const override {
    return label < 0 ? "?" : label == 1 ? "1" : "0";
  }
  // A digit for each point.
  std::string answers(std::span<const int32_t> labels) const override {
    std::string word;
    for (size_t i = 0; i < labels.size(); i += 2) word += answer(labels[i]);
    return word;
  }

 private:
  size_t d_;
  std::string form_;
};

class InContextFunction final : public Task {
 public:
  InContextFunction(FunctionClass type, std::string_view name, std::string_view description, int d,
                    bool teaching)
      : type_(type), name_(name), description_(description), d_(d), teaching_(teaching), text_(d) {}

  std::string_view name() const override { return name_; }
  std::string_view description() const override { return description_; }
  std::vector<TaskParameter> parameters() const override {
    std::vector<TaskParameter> list = {{"d", "dimensions of x", 8, 1, 64}};
    if (has_clauses(type_)) {
      list.push_back(
          {"teaching", "1 for samples that begin with points that teach the function", 0, 0, 1});
    }
    return list;
  }
  std::unique_ptr<const Task> variant(std::span<const int> values) const override {
    return std::make_unique<InContextFunction>(type_, name_, description_, values[0],
                                               values.size() > 1 && values[1] == 1);
  }
  TaskShape shape(int length) const override {
    return {.real_nodes = 2 * length, .data_columns = d_, .output_columns = 2};
  }
  int shortest_length() const override { return 2; }
  Loss loss() const override { return Loss::cross_entropy; }
  const TaskText* text() const override { return &text_; }
  std::vector<std::pair<std::string, std::string>> settings() const override {
    return {{"length", "16"}, {"range", "1"}, {"causal", "true"}, {"test-scales", "1..10"}};
  }
  std::vector<TestAxis> test_axes() const override {
    std::vector<TestAxis> axes = {
        {"c", "x in {-range c, range c}"},
        {"examples", "asked after so many examples", "examples seen", true}};
    if (type_ != FunctionClass::nearest) {
      axes.push_back({"literals", "coordinates that the function, or each clause, depends on",
                      "number of literals", true});
    }
    if (has_clauses(type_)) {
      axes.push_back({"teaching", "1: samples begin with points that teach the function, 0: not",
                      "teaching sequence first", true});
    }
    return axes;
  }

  void make_sample(RandomStream& random, const Sampling& sampling, int length,
                   const SampleRoom& room) const override {
    const Drawn drawn = draw_function(random, sampling);
    Seen seen;
    if (sampling.axis == "teaching" ? whole(sampling, 0, 1) == 1 : teaching_) {
      for (const Point& literals : drawn.weights) teach(literals, seen.xs);
      if (static_cast<int>(seen.xs.size()) > length) seen.xs.resize(length);
    }
    const Point& chosen = drawn.weights[random.below(static_cast<uint32_t>(drawn.weights.size()))];
    while (static_cast<int>(seen.xs.size()) < length) {
      seen.xs.push_back(draw_point(random, chosen));
    }
    const int random_labels = type_ == FunctionClass::nearest ? (length + 3) / 4 : 0;
    for (int i = 0; i < length; ++i) {
      if (i < random_labels) {
        const auto same = std::find(seen.xs.begin(), seen.xs.begin() + i, seen.xs[i]);
        const bool again = same < seen.xs.begin() + i;
        const int label = random.below(2) == 1 ? 1 : -1;
        seen.ys.push_back(again ? seen.ys[same - seen.xs.begin()] : label);
      } else {
        seen.ys.push_back(type_ == FunctionClass::nearest
                              ? nearest_label(seen, static_cast<size_t>(i))
                              : value_of(type_, drawn, seen.xs[i]));
      }
    }
    const int asked = sampling.axis == "examples" ? whole(sampling, random_labels, length - 1) : -1;
    std::ranges::fill(room.values, 0.0F);
    std::ranges::fill(room.labels, -1);
    for (int i = 0; i < length; ++i) {
      const std::span<float> node = room.values.subspan(int64_t{2} * i * d_, int64_t{2} * d_);
      for (int k = 0; k < d_; ++k)
        node[k] = sampling.range.high * static_cast<float>(seen.xs[i][k]);
      node[d_] = static_cast<float>(seen.ys[i]);
      if (i >= random_labels && (asked < 0 || asked == i)) room.labels[2 * i] = seen.ys[i] > 0;
    }
  }

  std::vector<Baseline> baselines() const override {
    const auto learner = [d = d_](const char* name, std::string description, auto guess) {
      return Baseline{name, std::move(description),
                      [d, guess](int length, const SampleView& sample, std::span<float> outputs) {
                        const Point guesses = guess(seen_in(sample, length, d));
                        for (int i = 0; i < length; ++i) {
                          outputs[4 * i + 1] = guesses[i] > 0;
                          outputs[4 * i] = guesses[i] <= 0;
                        }
                      }};
    };
    const bool ors = is_of_ors(type_);
    std::vector<Baseline> all;
    if (type_ == FunctionClass::conjunction || type_ == FunctionClass::disjunction) {
      all.push_back(learner("learner", "elimination: the literals that no example contradicts",
                            [ors](const Seen& seen) { return eliminate(seen, ors); }));
    } else if (type_ == FunctionClass::parity) {
      all.push_back(learner("learner", "Gaussian elimination modulo 2", solve_parity));
    } else if (type_ == FunctionClass::nearest) {
      all.push_back(learner("learner", "the label of the nearest example", nearest));
    } else {
      all.push_back(learner("learner", "the sign of the sum of y_j x_j . x", average));
    }
    all.push_back(learner("averaging", "the sign of the sum of y_j x_j . x", average));
    all.push_back(learner("nearest-neighbour", "the label of the nearest example", nearest));
    all.push_back(learner("negative", "answers -1",
                          [](const Seen& seen) { return Point(seen.xs.size(), -1); }));
    return all;
  }

 private:
  static Seen seen_in(const SampleView& sample, int length, int d) {
    Seen seen;
    for (int i = 0; i < length; ++i) {
      const std::span<const float> node = sample.values.subspan(int64_t{2} * i * d, int64_t{2} * d);
      Point x(d);
      std::ranges::transform(node.first(d), x.begin(),
                             [](float value) { return value > 0 ? 1 : -1; });
      seen.xs.push_back(std::move(x));
      seen.ys.push_back(node[d] > 0 ? 1 : -1);
    }
    return seen;
  }

  static int whole(const Sampling& sampling, int least, int most) {
    if (sampling.x >= least && sampling.x <= most && sampling.x == std::floor(sampling.x)) {
      return static_cast<int>(sampling.x);
    }
    throw Error(ExitCode::usage, fmt::format("{} = {}", sampling.axis, sampling.x),
                fmt::format("a whole number from {} to {}", least, most));
  }

  // A coordinate's weight, where it counts.
  int draw_weight(RandomStream& random) const {
    if (type_ == FunctionClass::majority || type_ == FunctionClass::parity) return 1;
    const int sign = random.below(2) == 1 ? 1 : -1;
    return type_ == FunctionClass::halfspace ? sign * (1 + static_cast<int>(random.below(3)))
                                             : sign;
  }

  // The probability that a coordinate counts.
  float share() const {
    switch (type_) {
      case FunctionClass::dnf:
      case FunctionClass::cnf:
        return 0.2F;
      case FunctionClass::parity:
        return 0.5F;
      case FunctionClass::halfspace:
        return 6.0F / 7;
      default:
        return 0.3F;
    }
  }

  Drawn draw_function(RandomStream& random, const Sampling& sampling) const {
    const bool three = type_ == FunctionClass::dnf || type_ == FunctionClass::cnf;
    Drawn drawn;
    for (int clause = 0; clause < (three ? 3 : 1); ++clause) {
      std::vector<uint8_t> counts(d_);
      if (sampling.axis == "literals") {
        counts = random_subset(random, d_, whole(sampling, 0, d_));
      } else {
        for (uint8_t& one : counts) one = random.uniform() < share();
      }
      Point weights(d_);
      for (int k = 0; k < d_; ++k) weights[k] = counts[k] != 0 ? draw_weight(random) : 0;
      drawn.weights.push_back(std::move(weights));
    }
    if (type_ == FunctionClass::threshold) drawn.bound = random.below(6) - 2.5;
    if (type_ == FunctionClass::halfspace) drawn.bound = 0.5;
    return drawn;
  }

  Point draw_point(RandomStream& random, const Point& chosen) const {
    Point x(d_);
    for (int& value : x) value = random.below(2) == 1 ? 1 : -1;
    const float made = type_ == FunctionClass::dnf ? 0.35F : has_clauses(type_) ? 0.3F : 0;
    if (made > 0 && random.uniform() < made) decide(chosen, x);
    return x;
  }

  // Makes x fulfil an and, or fail an or.
  void decide(const Point& literals, Point& x) const {
    for (size_t k = 0; k < x.size(); ++k) {
      if (literals[k] != 0) x[k] = is_of_ors(type_) ? -literals[k] : literals[k];
    }
  }

  // Which coordinates do not matter: two such points, with the others -1 and 1. And which do: the
  // first of them with one literal turned round, for each.
  void teach(const Point& literals, std::vector<Point>& xs) const {
    Point low(d_, -1), high(d_, 1);
    decide(literals, low);
    decide(literals, high);
    xs.push_back(low);
    xs.push_back(high);
    for (int k = 0; k < d_; ++k) {
      if (literals[k] == 0) continue;
      xs.push_back(low);
      xs.back()[k] *= -1;
    }
  }

  FunctionClass type_;
  std::string_view name_, description_;
  int d_;
  bool teaching_;
  PointsText text_;
};

}  // namespace

#define POSATTN_FUNCTION(type, words)                                                       \
  const Task& in_context_##type##_task() {                                                  \
    static const InContextFunction task(FunctionClass::type, "in-context-" #type, words, 8, \
                                        false);                                             \
    return task;                                                                            \
  }
POSATTN_FUNCTION(conjunction, "learning an and of literals from examples in the sample")
POSATTN_FUNCTION(disjunction, "learning an or of literals from examples in the sample")
POSATTN_FUNCTION(dnf, "learning an or of three ands from examples in the sample")
POSATTN_FUNCTION(cnf, "learning an and of three ors from examples in the sample")
POSATTN_FUNCTION(majority, "learning a majority of some coordinates from examples in the sample")
POSATTN_FUNCTION(threshold, "learning a sum of literals above a bound from examples in the sample")
POSATTN_FUNCTION(halfspace, "learning a halfspace of whole weights from examples in the sample")
POSATTN_FUNCTION(parity, "learning a parity of some coordinates from examples in the sample")
POSATTN_FUNCTION(nearest, "answering with the label of the most similar example before")
#undef POSATTN_FUNCTION

}  // namespace posattn
