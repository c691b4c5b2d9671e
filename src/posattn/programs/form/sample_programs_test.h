// Small programs of every kind for tests: what they compute is run_static's.
#pragma once

#include <algorithm>
#include <vector>

#include "posattn/base/random.h"
#include "posattn/programs/form/builder.h"

namespace posattn::testing {

inline std::vector<bool> where(int n, const auto& holds) {
  std::vector<bool> result(n);
  for (int i = 0; i < n; ++i) result[i] = holds(i);
  return result;
}

inline StaticProgram sum_program(int n, const WordType& type = {}) {
  ProgramBuilder program("cumulative-sum", n);
  program.set_task("cumulative-sum");
  const Variable x = program.input("x", type);
  const Variable total =
      program.word("total", type.is_real() ? type : WordType::integer(-9999, 9999));
  program.set(total, program[x]);
  for (int d = 1; d < n; d *= 2) {
    const Variable y = program.receive("y", total, [d](int i) { return i - d; });
    // The interval of a sum doubles, the numbers themselves do not.
    Value next = add(program[total], program[y]);
    if (!type.is_real()) {
      next = minimum(maximum(next, constant_value(-9999)), constant_value(9999));
    }
    program.set(total, next);
  }
  return program.finish(total);
}

inline StaticProgram extremum_program(int n, bool smallest) {
  ProgramBuilder program(smallest ? "cumulative-min" : "cumulative-max", n);
  program.set_task(smallest ? "cumulative-min" : "cumulative-max");
  const Variable x = program.input("x");
  for (int d = 1; d < n; d *= 2) {
    const Variable y = program.receive("y", x, [d](int i) { return i - d; });
    const Value best = smallest ? minimum(program[x], program[y]) : maximum(program[x], program[y]);
    program.set(x, where(n, [d](int i) { return i >= d; }), best, program[x]);
  }
  return program.finish(x);
}

// The normalised bitonic network: the first step of a merge is mirrored, the minimum always stays
// below, and comparators without a partner are left out.
inline StaticProgram sort_program(int n) {
  ProgramBuilder program("sort", n);
  program.set_task("sort");
  const Variable x = program.input("x");
  const auto compare = [&](const auto& partner) {
    const auto known = [&](int i) { return partner(i) < n ? partner(i) : i; };
    const Variable y = program.receive("y", x, known);
    program.set(x, where(n, [&](int i) { return known(i) >= i; }), minimum(program[x], program[y]),
                maximum(program[x], program[y]));
  };
  for (int block = 2; block < 2 * n; block *= 2) {
    compare([&](int i) { return i ^ (block - 1); });
    for (int d = block / 4; d >= 1; d /= 2) compare([&](int i) { return i ^ d; });
  }
  return program.finish(x);
}

// (sum, best ending here, best from the start, best) of blocks that double.
inline StaticProgram max_subarray_program(int n) {
  ProgramBuilder program("cumulative-max-subarray", n);
  program.set_task("cumulative-max-subarray");
  const Variable x = program.input("x");
  const Variable words[] = {x, program.word("ending", {}), program.word("starting", {}),
                            program.word("best", {})};
  for (const Variable& word : words) program.set(word, program[x]);
  for (int d = 1; d < n; d *= 2) {
    Variable left[4];
    const char* names[] = {"left-sum", "left-ending", "left-starting", "left-best"};
    for (int k = 0; k < 4; ++k) {
      left[k] = program.receive(names[k], words[k], [d](int i) { return i - d; });
    }
    Value old[4], received[4];
    for (int k = 0; k < 4; ++k) old[k] = program[words[k]], received[k] = program[left[k]];
    const Value next[] = {add(received[0], old[0]), maximum(old[1], add(received[1], old[0])),
                          maximum(received[2], add(received[0], old[2])),
                          maximum(maximum(received[3], old[3]), add(received[1], old[2]))};
    const std::vector<bool> has_left = where(n, [d](int i) { return i >= d; });
    for (int k = 0; k < 4; ++k) program.set(words[k], has_left, next[k], old[k]);
  }
  return program.finish(words[3]);
}

// A fixed matrix: weights of both signs, empty rows, rows of one.
inline StaticProgram matrix_program(int n, RandomStream& random) {
  ProgramBuilder program("matrix-vector", n);
  const Variable x = program.input("x");
  Route route;
  for (int i = 0; i < n; ++i) {
    auto& row = route.weighted.emplace_back();
    const auto count = random.below(4);
    for (uint32_t k = 0; k < count; ++k) {
      row.emplace_back(static_cast<int32_t>(random.below(n)), random.uniform(-2, 2));
    }
  }
  const Variable y = program.receive("y", x, std::move(route));
  const Variable z = program.receive("z", x, [n](int i) { return n - 1 - i; });
  program.set(x, add(program[y], scale(0.25, program[z])));
  return program.finish(x);
}

// Whole numbers: comparisons, selections, position bits, words with initial values, random routes.
inline StaticProgram integer_program(int n, RandomStream& random) {
  ProgramBuilder program("integers", n);
  const Variable x = program.input("x", WordType::integer(-9, 9));
  std::vector<double> initial(n);
  for (double& value : initial) value = random.below(7);
  const Variable key = program.word("key", WordType::integer(0, 6), initial);
  const Variable state = program.word("state", WordType::integer(-100, 100));
  program.set(state, add(program[x], program[key]));
  const Value low = constant_value(-100), high = constant_value(100);
  for (int round = 0; round < 3; ++round) {
    std::vector<int> place(n);
    for (int& from : place) from = static_cast<int>(random.below(n + 1));
    const Variable y = program.receive("y", state, [&](int i) { return place[i]; });
    const Value a = program[state], b = program[y];
    const Value chosen =
        select(at_least(a, b), subtract(a, program[key]), add(b, constant_value(3)));
    const Value bounded = minimum(maximum(chosen, low), high);
    if (random.below(2) == 0) {
      program.set(state, bounded);
    } else {
      const auto odd = where(n, [&](int i) { return (i + round) % 2 == 1; });
      program.set(state, odd, bounded, constant_value(round));
    }
  }
  return program.finish(state);
}

struct SampleProgram {
  StaticProgram program;
  bool integers = false;  // inputs and results, exact in fp32
  bool weighted = false;  // weights are rounded to fp32
};

inline std::vector<SampleProgram> sample_programs(int n, uint64_t seed) {
  RandomStream random(seed, Purpose::test_data, 0, static_cast<uint32_t>(n));
  std::vector<SampleProgram> all;
  all.push_back({sum_program(n)});
  all.push_back({sum_program(n, WordType::integer(-9, 9)), true});
  all.push_back({extremum_program(n, true)});
  all.push_back({extremum_program(n, false)});
  all.push_back({sort_program(n)});
  all.push_back({max_subarray_program(n)});
  all.push_back({matrix_program(n, random), false, true});
  all.push_back({integer_program(n, random), true});
  return all;
}

}  // namespace posattn::testing
