// What a program may take for granted about an input beyond its type: `word d : ... = input
// permutation`. Who gives inputs is held to it; who draws them keeps it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "posattn/base/random.h"
#include "posattn/programs/form/expression.h"

namespace posattn {

enum class Promise {
  same,         // the same number on every processor
  permutation,  // of 0 .. processors - 1
  list,         // each processor's successor in one list of all, -1 at its end
  symmetric,    // as many columns as processors: a symmetric matrix with a zero diagonal
};

// Some of a program's inputs, one after the other, that keep a promise together.
struct PromisedInputs {
  Promise promise = Promise::same;
  int first = 0, count = 1;
};

std::string_view to_string(Promise promise);
// Throws unknown_name(configuration).
Promise parse_promise(const std::string& name);

// 0 .. count - 1 in random order.
std::vector<int> random_order(int count, RandomStream& random);

// What is wrong with the columns [processors, count], or "".
std::string broken(Promise promise, std::span<const double> columns, int processors);

// Columns [processors, count] that keep it, of numbers of the type.
std::vector<double> drawn(Promise promise, const WordType& type, int processors, int count,
                          RandomStream& random);

}  // namespace posattn
