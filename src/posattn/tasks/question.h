// Questions about some of a sample's numbers: the least, the sum or the greatest of those that are
// asked about.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "posattn/base/random.h"

namespace posattn {

enum class Question { minimum, sum, maximum };
std::string_view word_of(Question question);  // "min", "sum", "max": three letters each

// A sum is rounded once.
float answer_to(Question question, std::span<const float> asked);

// The best answer when it is not known which `asked` of the numbers are meant: the mean over every
// choice. Of all predictors that see only the numbers and the kind of question, it has the least
// squared error.
float query_blind_answer(Question question, std::span<const float> numbers, int asked);

// `chosen` different numbers below `bound`, in random order.
std::vector<int> choose(RandomStream& random, int bound, int chosen);

}  // namespace posattn
