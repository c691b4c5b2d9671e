// Messages that attention from the data carries: one layer of softmax attention for all of a round.
// Receiver i looks for the sender j whose destination d_j is i. Queries and keys are linear in
// words,
//   query of i: b (2 i, -1, i^2 - 1/2)    key of j: (d_j, d_j^2, -1)    key of the scratch node: 0
//   score: b (1/2 - (i - d_j)^2), and 0 for the scratch node
// so the sender is b / 2 above the scratch node, which holds zeros, and that b / 2 above all
// others. The layer before computes d_j^2.
#include <fmt/format.h>

#include <algorithm>

#include "posattn/programs/messages/message_group.h"

namespace posattn {
namespace {

// d^2 for every d from -1 to n, straight between whole numbers: -d + 2 sum_k relu(d - k) for k in
// 0 .. n - 1. Farther outside it goes on straight, and scores stay at -b / 2 and below:
//   d = n + m: b (1/2 - (n - i)^2 - m (2 (n - i) - 1)),   d = -m: b (1/2 - i^2 - m (2 i + 1)).
Value square_of(const Value& d, int n) {
  Value sum = scale(-1, d);
  for (int k = 0; k < n; ++k) sum = add(sum, scale(2, relu(subtract(d, constant_value(k)))));
  const auto at = [&](int64_t x) {
    return x <= 0 ? -x : x < n ? x * x : int64_t{n} * n + (2 * n - 1) * (x - n);
  };
  return with_type(sum, WordType::integer(0, std::max(at(d->type.low), at(d->type.high))));
}

}  // namespace

Arrivals deliver_by_attention(ProgramBuilder& builder, const std::vector<MessageGroup>& groups,
                              Variable index, Variable index_square) {
  // Hinges of what is a ReLU itself would make the network wide: each is a number between layers.
  const bool is_read = std::ranges::all_of(
      groups, [&](const MessageGroup& group) { return builder[group.destination]->reads(); });
  if (!is_read) builder.end_round();
  std::vector<Variable> squares;
  for (const MessageGroup& group : groups) {
    const Value square = square_of(builder[group.destination], builder.processors());
    squares.push_back(builder.inferred_word(fmt::format("square for {}", group.names[0]), true));
    builder.set(squares.back(), square);
  }
  Arrivals arrived;
  for (size_t g = 0; g < groups.size(); ++g) {
    const MessageGroup& group = groups[g];
    Route route;
    route.destination = group.destination.word;
    route.permutation = group.permutation;
    route.scored_by = {squares[g].word, index.word, index_square.word};
    std::vector<Variable>& words = arrived.emplace_back();
    for (size_t k = 0; k < group.payloads.size(); ++k) {
      // A word of its own: the round may have another message of that name.
      words.push_back(builder.inferred_word(group.names[k], false));
      builder.set(words.back(), builder.receive_value(group.names[k], group.payloads[k], route));
    }
  }
  return arrived;
}

}  // namespace posattn
