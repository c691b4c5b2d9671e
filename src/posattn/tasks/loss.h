// What training makes small: a task names it, a model's spec carries it, engines compute it.
#pragma once

namespace posattn {

enum class Loss {
  squared_error,  // of numbers, mean over samples, nodes and columns
  cross_entropy,  // of classes, mean over the nodes whose label counts
};

}  // namespace posattn
