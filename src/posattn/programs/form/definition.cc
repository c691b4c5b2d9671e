#include "posattn/programs/form/definition.h"

#include <algorithm>

#include "posattn/tasks/k_hop.h"

namespace posattn {
namespace {

using Numbers = std::vector<double>;
using Input = std::span<const double>;

// Letters 1 .. q and k, the same everywhere; 0 where a hop leads nowhere.
Numbers k_hops(int n, Input input) {
  std::vector<int32_t> word(n);
  for (int i = 0; i < n; ++i) word[i] = static_cast<int32_t>(input[2 * i]);
  Numbers answer;
  for (const int32_t letter : k_hop(word, static_cast<int>(input[1]))) {
    answer.push_back(std::max<int32_t>(0, letter));
  }
  return answer;
}

// Destinations and words: what was sent to each.
Numbers scattered(int n, Input input) {
  Numbers answer(n);
  for (int i = 0; i < n; ++i) answer[static_cast<int>(input[2 * i])] = input[2 * i + 1];
  return answer;
}

// Places and words: what stands at each one's place.
Numbers gathered(int n, Input input) {
  Numbers answer(n);
  for (int i = 0; i < n; ++i) answer[i] = input[2 * static_cast<int>(input[2 * i]) + 1];
  return answer;
}

// Successors: how many come after.
Numbers list_ranks(int n, Input next) {
  Numbers answer(n);
  for (int i = 0; i < n; ++i) {
    for (double at = next[i]; at >= 0; at = next[static_cast<int>(at)]) ++answer[i];
  }
  return answer;
}

Numbers sorted(int n, Input input) {
  Numbers answer(input.begin(), input.begin() + n);
  std::ranges::sort(answer);
  return answer;
}

// Distances from `start` along edges, n where it cannot be reached.
Numbers distances_from(int start, int n, Input matrix) {
  Numbers distance(n, n);
  std::vector<int> queue{start};
  distance[start] = 0;
  for (size_t next = 0; next < queue.size(); ++next) {
    const int i = queue[next];
    for (int j = 0; j < n; ++j) {
      if (matrix[i * n + j] == 0 || distance[j] < n) continue;
      distance[j] = distance[i] + 1;
      queue.push_back(j);
    }
  }
  return distance;
}

Numbers breadth_first(int n, Input matrix) { return distances_from(0, n, matrix); }

// The smallest index in the component of each.
Numbers components(int n, Input matrix) {
  Numbers answer(n);
  for (int i = 0; i < n; ++i) {
    const Numbers distance = distances_from(i, n, matrix);
    answer[i] = static_cast<double>(
        std::ranges::find_if(distance, [&](double d) { return d < n; }) - distance.begin());
  }
  return answer;
}

// Binary digits, the highest first: whether the number of each prefix is divisible by 3.
Numbers divisible_by_three(int n, Input digits) {
  Numbers answer;
  int rest = 0;
  for (int i = 0; i < n; ++i) {
    rest = (2 * rest + static_cast<int>(digits[i])) % 3;
    answer.push_back(rest == 0 ? 1 : 0);
  }
  return answer;
}

}  // namespace

const std::vector<Definition>& definitions() {
  static const std::vector<Definition> all = {
      {"k-hop", 2, 1, k_hops},          {"scatter", 2, 1, scattered},
      {"gather", 2, 1, gathered},       {"list-ranking", 1, 1, list_ranks},
      {"radix-sort", 1, 1, sorted},     {"breadth-first", 0, 1, breadth_first},
      {"components", 0, 1, components}, {"divisible-by-three", 1, 1, divisible_by_three},
  };
  return all;
}

const Definition* find_definition(std::string_view name) {
  const auto found = std::ranges::find(definitions(), name, &Definition::name);
  return found == definitions().end() ? nullptr : &*found;
}

}  // namespace posattn
