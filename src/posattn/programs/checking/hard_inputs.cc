#include "posattn/programs/checking/hard_inputs.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <string_view>

namespace posattn {
namespace {

// The array that a word is an element of, or "".
std::string_view array_of(const Word& word) {
  const std::string_view name = word.name;
  return name.ends_with(']') ? name.substr(0, name.rfind('[')) : "";
}

// What the program compares numbers with: its constants, also divided by its factors.
std::vector<double> constants_of(const StaticProgram& program) {
  constexpr size_t most = 4096;
  std::vector<double> constants, factors = {1};
  const auto note = [&](std::vector<double>& numbers, double x) {
    if (std::isfinite(x) && numbers.size() < most) numbers.push_back(x);
  };
  for (const Round& round : program.rounds) {
    for (const Instruction& instruction : round.instructions) {
      if (instruction.kind == Operator::Kind::constant) note(constants, instruction.number);
      if (instruction.kind == Operator::Kind::scale) note(factors, instruction.number);
    }
  }
  for (const Word& word : program.words) {
    for (const double x : word.initial) note(constants, x);
  }
  const auto make_unique = [](std::vector<double>& numbers) {
    std::ranges::sort(numbers);
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  };
  make_unique(constants);
  make_unique(factors);
  std::vector<double> all;
  for (const double factor : factors) {
    if (factor == 0) continue;
    for (const double x : constants) {
      note(all, x / factor);
      note(all, -x / factor);
    }
  }
  make_unique(all);
  return all;
}

std::vector<int> special_order(int64_t kind, int n, RandomStream& random) {
  std::vector<int> order(n);
  std::iota(order.begin(), order.end(), 0);
  const int digits = static_cast<int>(std::bit_width(static_cast<unsigned>(n))) - 1;
  switch (kind % 8) {
    case 0:  // in order
      break;
    case 1:
      std::ranges::reverse(order);
      break;
    case 2:
      std::rotate(order.begin(), order.begin() + below(n, random), order.end());
      break;
    case 3:
      std::swap(order[below(n, random)], order[below(n, random)]);
      break;
    case 4:  // even places first
      std::stable_partition(order.begin(), order.end(), [](int i) { return i % 2 == 0; });
      break;
    case 5:  // binary digits in reverse order, up to the largest power of two
      for (int i = 0; i < 1 << digits; ++i) {
        int reversed = 0;
        for (int b = 0; b < digits; ++b) reversed |= ((i >> b) & 1) << (digits - 1 - b);
        order[i] = reversed;
      }
      break;
    case 6: {  // partners at one distance change places
      const int distance = 1 << below(digits + 1, random);
      for (int i = 0; i < n; ++i) {
        if ((i ^ distance) < n) order[i] = i ^ distance;
      }
      break;
    }
    default:
      return random_order(n, random);
  }
  return order;
}

// A matrix of a graph's edges; 0 where there is none, or what comes nearest.
std::vector<double> graph_matrix(int64_t shape, int n, const NumberRange& range, bool symmetric,
                                 RandomStream& random) {
  const Edges edges = drawn_graph(static_cast<int>(shape % graph_shape_count()), n, random);
  // In some graphs that are not promised to be symmetric no edge leads back.
  const bool both_ways = symmetric || random.uniform() < 0.5F;
  // Where lengths are given, no edge may also be the longest one.
  const double none = !symmetric && random.uniform() < 0.5F ? range.high : range.allowed(0);
  std::vector<double> matrix(static_cast<size_t>(n) * n, symmetric ? 0 : none);
  const bool is_bit = range.whole && range.low >= 0 && range.high <= 1;
  const int weights = below(3, random);
  for (const auto& [i, j] : edges) {
    double x = weights == 0   ? range.high
               : weights == 1 ? range.special(random)
                              : range.uniform(random);
    if (is_bit || x == none) x = none == range.high ? range.low : range.high;
    matrix[i * n + j] = x;
    if (both_ways) matrix[j * n + i] = x;
  }
  if (!symmetric && random.uniform() < 0.5F) {
    for (int i = 0; i < n; ++i) matrix[i * n + i] = range.allowed(0);
  }
  return matrix;
}

}  // namespace

HardInputs::HardInputs(const StaticProgram& program)
    : program_(program), constants_(constants_of(program)) {
  const auto columns = static_cast<int>(program.inputs.size());
  const auto word = [&](int c) -> const Word& { return program.words[program.inputs[c]]; };
  for (int c = 0; c < columns;) {
    Group group{.first = c};
    const auto promised = std::ranges::find(program.promises, c, &PromisedInputs::first);
    if (promised != program.promises.end()) {
      group.count = promised->count;
      group.promised = &*promised;
    } else if (!array_of(word(c)).empty()) {
      while (c + group.count < columns && array_of(word(c + group.count)) == array_of(word(c))) {
        ++group.count;
      }
    }
    c += group.count;
    groups_.push_back(group);
  }
}

std::vector<double> HardInputs::drawn_group(const Group& group, int64_t index,
                                            const ValueRange& range, RandomStream& random) const {
  const int n = program_.processors;
  const WordType& type = program_.words[program_.inputs[group.first]].type;
  NumberRange numbers{.low = range.low, .high = range.high, .whole = false, .specials = constants_};
  if (!type.is_real()) {
    numbers = {static_cast<double>(type.low), static_cast<double>(type.high), true, constants_};
  }
  if (group.promised) {
    switch (group.promised->promise) {
      case Promise::same:
        return std::vector<double>(static_cast<size_t>(n) * group.count, numbers.special(random));
      case Promise::permutation: {
        const std::vector<int> order = special_order(index, n, random);
        return {order.begin(), order.end()};
      }
      case Promise::list: {
        const std::vector<int> order = special_order(index, n, random);
        std::vector<double> next(n, -1);
        for (int k = 0; k + 1 < n; ++k) next[order[k]] = order[k + 1];
        return next;
      }
      case Promise::symmetric:
        return graph_matrix(index, n, numbers, true, random);
    }
  }
  if (group.count == n && n > 1 && index % 2 == 0) {
    return graph_matrix(index / 2, n, numbers, false, random);
  }
  const int64_t pattern = group.count == n ? index / 2 : index;
  // An array has one pattern over all its numbers, or one for each column.
  if (group.count == 1 || random.uniform() < 0.5F) {
    return patterned(pattern, n * group.count, numbers, random);
  }
  std::vector<double> columns(static_cast<size_t>(n) * group.count);
  for (int c = 0; c < group.count; ++c) {
    const std::vector<double> column = patterned(pattern + c, n, numbers, random);
    for (int i = 0; i < n; ++i) columns[i * group.count + c] = column[i];
  }
  return columns;
}

void HardInputs::draw(RandomStream& random, const ValueRange& range, int64_t index,
                      std::span<float> input) const {
  const size_t columns = program_.inputs.size();
  std::vector<double> previous;
  for (size_t g = 0; g < groups_.size(); ++g) {
    const Group& group = groups_[g];
    // The first group takes turns with every index; the others go through all combinations.
    const int64_t own = g == 0 ? index : random.below(1 << 20);
    std::vector<double> numbers = drawn_group(group, own, range, random);
    // Columns of the same type are sometimes equal.
    if (g > 0 && !group.promised && previous.size() == numbers.size() &&
        program_.words[program_.inputs[group.first]].type ==
            program_.words[program_.inputs[groups_[g - 1].first]].type &&
        random.uniform() < 0.2F) {
      numbers = previous;
    }
    const auto count = static_cast<size_t>(group.count);
    for (size_t k = 0; k < numbers.size(); ++k) {
      input[k / count * columns + group.first + k % count] = static_cast<float>(numbers[k]);
    }
    previous = std::move(numbers);
  }
}

}  // namespace posattn
