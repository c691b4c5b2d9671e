#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "posattn/base/enum_names.h"
#include "posattn/base/error.h"
#include "posattn/programs/form/static_program.h"

namespace posattn {
namespace {

constexpr EnumNames<Promise, 4> promise_names = {{
    {Promise::same, "same"},
    {Promise::permutation, "permutation"},
    {Promise::list, "list"},
    {Promise::symmetric, "symmetric"},
}};

std::string not_same(std::span<const double> column) {
  const auto other = std::ranges::find_if(column, [&](double x) { return x != column[0]; });
  if (other == column.end()) return "";
  return fmt::format("{} and {}, where all must be the same", *other, column[0]);
}

std::string no_permutation(std::span<const double> column) {
  std::vector<bool> seen(column.size());
  for (const double x : column) {
    if (!(x >= 0 && x < static_cast<double>(column.size()))) {
      return fmt::format("{}, where a permutation of 0 to {} must be", x, column.size() - 1);
    }
    if (seen[static_cast<size_t>(x)]) {
      return fmt::format("{} twice, where a permutation must be", x);
    }
    seen[static_cast<size_t>(x)] = true;
  }
  return "";
}

std::string no_list(std::span<const double> next) {
  const auto n = static_cast<int>(next.size());
  std::vector<int> before(n, 0);
  for (const double x : next) {
    if (x >= 0 && x < n) ++before[static_cast<int>(x)];
  }
  const auto head = std::ranges::find(before, 0);
  int at = head == before.end() ? -1 : static_cast<int>(head - before.begin()), reached = 0;
  while (at >= 0 && at < n && reached < n) {
    ++reached;
    at = static_cast<int>(next[at]);
  }
  if (reached == n && at == -1) return "";
  return fmt::format(
      "successors that reach {} of {} processors, where they must be one list that "
      "ends with -1",
      reached, n);
}

std::string not_symmetric(std::span<const double> matrix, int n) {
  for (int i = 0; i < n; ++i) {
    if (matrix[i * n + i] != 0)
      return fmt::format("{} at place {} of the diagonal, which must be 0", matrix[i * n + i], i);
    for (int j = 0; j < i; ++j) {
      if (matrix[i * n + j] == matrix[j * n + i]) continue;
      return fmt::format("{} from {} to {} but {} back, where the matrix must be symmetric",
                         matrix[i * n + j], i, j, matrix[j * n + i]);
    }
  }
  return "";
}

double number_of(const WordType& type, RandomStream& random) {
  const auto low = static_cast<double>(type.low), high = static_cast<double>(type.high);
  return std::min(high, low + std::floor(random.uniform() * (high - low + 1)));
}

}  // namespace

std::vector<int> random_order(int count, RandomStream& random) {
  std::vector<int> order(count);
  std::iota(order.begin(), order.end(), 0);
  for (int i = count - 1; i > 0; --i) {
    std::swap(order[i], order[static_cast<int>(random.below(static_cast<uint32_t>(i) + 1))]);
  }
  return order;
}

std::string_view to_string(Promise promise) { return name_of(promise_names, promise); }
Promise parse_promise(const std::string& name) {
  return value_of(promise_names, ExitCode::configuration, "promise", name);
}

std::string broken(Promise promise, std::span<const double> columns, int processors) {
  if (promise == Promise::same) return not_same(columns);
  if (promise == Promise::permutation) return no_permutation(columns);
  return promise == Promise::list ? no_list(columns) : not_symmetric(columns, processors);
}

std::vector<double> drawn(Promise promise, const WordType& type, int processors, int count,
                          RandomStream& random) {
  std::vector<double> columns(static_cast<size_t>(processors) * count);
  switch (promise) {
    case Promise::same:
      std::ranges::fill(columns, number_of(type, random));
      break;
    case Promise::permutation:
      std::ranges::copy(random_order(processors, random), columns.begin());
      break;
    case Promise::list: {
      const std::vector<int> order = random_order(processors, random);
      for (int k = 0; k < processors; ++k) {
        columns[order[k]] = k + 1 < processors ? order[k + 1] : -1;
      }
      break;
    }
    case Promise::symmetric: {
      // Some graphs have few edges and fall apart, others are dense.
      const double share = random.uniform() * random.uniform();
      for (int i = 0; i < processors; ++i) {
        for (int j = 0; j < i; ++j) {
          const double x = random.uniform() < share ? number_of(type, random) : 0;
          columns[i * processors + j] = columns[j * processors + i] = x;
        }
      }
      break;
    }
  }
  return columns;
}

}  // namespace posattn
