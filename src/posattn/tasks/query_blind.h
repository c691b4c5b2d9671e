// The best answer to a question about four prices of which one does not know which four are meant.
#pragma once

#include <span>

#include "posattn/tasks/mixed_prompt.h"

namespace posattn {

// The mean of the answer over every choice of four prices: of all predictors that see only the
// prices and the kind of question, the one of least squared error.
float query_blind_answer(Question question, std::span<const float> prices);

}  // namespace posattn
