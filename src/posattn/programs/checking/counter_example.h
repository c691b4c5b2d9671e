// An input on which a model is wrong, made simple.
#pragma once

#include <vector>

#include "posattn/programs/checking/judged_network.h"

namespace posattn {

// Takes away numbers and digits as long as the model stays wrong. The more a run of the model
// costs, the fewer simpler inputs are tried.
CounterExample simplified(JudgedNetwork& network, std::vector<float> input, double c);

}  // namespace posattn
