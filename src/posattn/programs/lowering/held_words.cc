#include "posattn/programs/lowering/held_words.h"

namespace posattn {

HeldWords held_words(const NetworkPlan& plan, int round) {
  HeldWords held;
  if (round < 0) {
    held.columns = plan.start;
    return held;
  }
  held.columns.assign(plan.program.words.size(), -1);
  for (size_t k = 0; k < plan.layers.size(); ++k) {
    if (plan.layers[k].round == round) held.layers.push_back(static_cast<int>(k));
  }
  if (held.layers.empty()) return held;
  held.depth = held.layers.back() + 1;
  const std::vector<int>& words = plan.layers[held.layers.back()].words;
  for (size_t column = 0; column < words.size(); ++column) {
    if (words[column] >= 0) held.columns[words[column]] = static_cast<int>(column);
  }
  return held;
}

}  // namespace posattn
