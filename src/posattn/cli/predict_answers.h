// What a model of texts writes behind the lines of a file.
#pragma once

#include <string>
#include <vector>

#include "posattn/model/model_file.h"
#include "posattn/tasks/task_text.h"

namespace posattn {

// The task of the model, where its answers are written; otherwise null.
const WrittenAnswers* written_answers_of(const Model& model);

// One answer for each line of `text`, whose name serves errors. Throws Error(data) for a line that
// is not UTF-8, or has more tokens than the model can read.
std::vector<std::string> answers_to(const Model& model, std::string_view text,
                                    const std::string& name, int threads);

}  // namespace posattn
