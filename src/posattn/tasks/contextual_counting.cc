// Counting in context (arXiv 2406.02585): a text of the letters 0, 1, [ and ] has regions, each
// between an opening and the next closing bracket, and the nodes after the text ask for the number
// of ones inside the first region, the second, ... `contextual-sum` is the same with numbers in
// place of ones: it asks for the sum of each region. The paper does not say how its samples are
// drawn. Here the brackets stand at different places, all sets alike, and each other letter is a
// one with a probability that is uniform in [0, 1] for each sample. A first node with a token of
// its own stands before the text: the share of attention that it gets says how many nodes are read.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "posattn/base/error.h"
#include "posattn/base/text.h"
#include "posattn/tasks/subset.h"
#include "posattn/tasks/task.h"

namespace posattn {
namespace {

// Tokens; the questions for the regions follow. A number has none.
enum Letter : int32_t { zero, one, opening, closing, start, first_question };
constexpr std::string_view letters = "01[]";

// What each region holds; ones and numbers outside belong to none, and so do those of regions that
// nobody asks for.
std::vector<double> region_sums(const SampleView& sample, int length, int regions) {
  std::vector<double> sums(regions);
  int region = -1;
  bool inside = false;
  for (int i = 1; i <= length; ++i) {
    const int32_t letter = sample.tokens[i];
    if (letter == opening) ++region;
    if (letter == opening || letter == closing) inside = letter == opening;
    if (!inside || region >= regions) continue;
    if (letter == one) sums[region] += 1;
    if (letter < 0) sums[region] += sample.values[i];
  }
  return sums;
}

void put_others(int length, int regions, std::span<int32_t> tokens) {
  tokens[0] = start;
  for (int g = 0; g < regions; ++g) tokens[1 + length + g] = first_question + g;
}

// "[0][101]0": the letters of a sample. The questions are not written.
class LettersText final : public TaskText {
 public:
  explicit LettersText(int regions) : regions_(regions) {}
  std::string_view form() const override { return "letters 0, 1, [ and ], as [0][101]0"; }
  int length_of(std::string_view line) const override { return static_cast<int>(line.size()); }
  void read(std::string_view line, int length, const SampleRoom& room) const override {
    if (static_cast<int>(line.size()) != length) {
      throw Error(ExitCode::data, fmt::format("{} letters", line.size()),
                  fmt::format("{}, as in training", length));
    }
    for (int i = 0; i < length; ++i) {
      const size_t letter = letters.find(line[i]);
      if (letter == std::string_view::npos) {
        throw Error(ExitCode::data,
                    fmt::format("'{}' among the letters", printable(line.substr(i, 1))),
                    std::string(form()));
      }
      room.tokens[1 + i] = static_cast<int32_t>(letter);
    }
    put_others(length, regions_, room.tokens);
  }
  std::string node(int32_t token, std::span<const float> /*values*/) const override {
    if (token >= first_question) return fmt::format("?{}", token - first_question + 1);
    return token == start ? "^" : std::string(1, letters[token]);
  }
  std::string answer(int32_t /*label*/) const override { return ""; }

 private:
  int regions_;
};

class Regions final : public Task {
 public:
  Regions(bool numbers, int regions) : numbers_(numbers), regions_(regions), text_(regions) {}

  std::string_view name() const override {
    return numbers_ ? "contextual-sum" : "contextual-counting";
  }
  std::string_view description() const override {
    return numbers_ ? "sum of the numbers between each pair of brackets"
                    : "number of ones between each pair of brackets";
  }
  std::vector<TaskParameter> parameters() const override {
    return {{"regions", "pairs of brackets", 4, 1, 16}};
  }
  std::unique_ptr<const Task> variant(std::span<const int> values) const override {
    return std::make_unique<Regions>(numbers_, values[0]);
  }
  TaskShape shape(int length) const override {
    return {.real_nodes = 1 + length + regions_,
            .data_columns = numbers_ ? 1 : 0,
            .vocabulary = first_question + regions_,
            .read_nodes = -regions_};
  }
  int shortest_length() const override { return 2 * regions_; }
  const TaskText* text() const override { return numbers_ ? nullptr : &text_; }
  std::vector<std::pair<std::string, std::string>> settings() const override {
    std::vector<std::pair<std::string, std::string>> some = {{"length", "32"}};
    if (!numbers_) some.emplace_back("test-axis", "density=0.1,0.5,0.9");
    return some;
  }
  std::vector<TestAxis> test_axes() const override {
    std::vector<TestAxis> axes = {
        {"regions", "pairs of brackets, at most as in training; the answer for others is 0",
         "number of regions", true},
        {"density", "share of ones among the other letters", "share of ones"}};
    if (numbers_) {
      axes[1] = {"density", "share of numbers among the other letters", "share of numbers"};
      axes.insert(axes.begin(), {"c", "numbers in [-range c, range c]"});
    }
    return axes;
  }

  void make_sample(RandomStream& random, const Sampling& sampling, int length,
                   const SampleRoom& room) const override {
    const int regions = sampling.axis == "regions" ? asked_regions(sampling.x) : regions_;
    const float density = sampling.axis == "density" ? asked_density(sampling.x) : random.uniform();
    const std::vector<uint8_t> brackets = random_subset(random, length, 2 * regions);
    std::ranges::fill(room.values, 0.0F);
    if (numbers_) draw_values(random, sampling.range, room.values.subspan(1, length));
    bool inside = false;
    for (int i = 1; i <= length; ++i) {
      int32_t& token = room.tokens[i];
      if (brackets[i - 1] != 0) {
        token = inside ? closing : opening;
        inside = !inside;
      } else {
        token = random.uniform() >= density ? zero : numbers_ ? -1 : one;
      }
      if (numbers_ && token >= 0) room.values[i] = 0;
    }
    put_others(length, regions_, room.tokens);
    std::ranges::fill(room.targets, 0.0F);
    put(region_sums({.values = room.values, .tokens = room.tokens}, length, regions_), length,
        room.targets);
  }

  std::vector<Baseline> baselines() const override {
    return {{"region-blind", "the mean over the regions: knows what they hold, not their order",
             [this](int length, const SampleView& sample, std::span<float> outputs) {
               std::vector<double> sums = region_sums(sample, length, regions_);
               double total = 0;
               for (const double sum : sums) total += sum;
               std::ranges::fill(sums, total / regions_);
               put(sums, length, outputs);
             }},
            {"means-for-sums",
             "the answer times (n + 1) / (m + 1) for a model of length n and a text of length m: "
             "that of means, multiplied as suits the trained length",
             [this](int length, const SampleView& sample, std::span<float> outputs) {
               const int trained = sample.model.length > 0 ? sample.model.length : length;
               std::vector<double> sums = region_sums(sample, length, regions_);
               for (double& sum : sums) sum *= (trained + 1.0) / (length + 1.0);
               put(sums, length, outputs);
             }}};
  }

 private:
  static void put(const std::vector<double>& answers, int length, std::span<float> outputs) {
    std::ranges::transform(answers, outputs.begin() + 1 + length,
                           [](double answer) { return static_cast<float>(answer); });
  }
  int asked_regions(double x) const {
    if (x >= 1 && x <= regions_ && x == std::floor(x)) return static_cast<int>(x);
    throw Error(ExitCode::usage, fmt::format("regions = {} for task {}", x, name()),
                fmt::format("a whole number from 1 to {}", regions_),
                fmt::format("--task-set regions={} trains with more", x));
  }
  static float asked_density(double x) {
    if (x >= 0 && x <= 1) return static_cast<float>(x);
    throw Error(ExitCode::usage, fmt::format("density = {}", x), "0 to 1");
  }

  bool numbers_;
  int regions_;
  LettersText text_;
};

}  // namespace

const Task& contextual_counting_task() {
  static const Regions task(false, 4);
  return task;
}

const Task& contextual_sum_task() {
  static const Regions task(true, 4);
  return task;
}

}  // namespace posattn
