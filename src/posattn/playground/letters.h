// Tasks whose nodes hold a letter and a number (tasks/lettered.h), as a page shows them: what
// tokens are called, and the exact answer to letters and numbers that somebody typed. Task::solve,
// which is for numbers alone, has none.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "posattn/model/file/model_file.h"

namespace posattn::playground {

bool has_letters(const Task& task);

// The words of all tokens that make sense, by their numbers; none for another task.
std::vector<std::string> letters_of(const Task& task, int length);

// The answer at the nodes that are read, [nodes]; nothing for another task, and where the letters
// say nothing: one is asked about that no item has, or several have.
std::vector<float> lettered_answer(const ModelOrigin& origin, std::span<const int32_t> tokens,
                                   std::span<const float> numbers);

}  // namespace posattn::playground
