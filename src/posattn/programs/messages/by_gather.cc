// Everybody reads everybody's message and picks the one that is meant for it: a head for every
// sender, and the same few layers whatever N is, where memory and heads for N messages are at hand.
#include <fmt/format.h>

#include "posattn/programs/messages/message_group.h"

namespace posattn {

std::vector<Variable> deliver_by_gather(ProgramBuilder& builder, const MessageGroup& group,
                                        Variable index) {
  const int n = builder.processors();
  const size_t count = group.payloads.size();
  std::vector<Variable> read = group.payloads;
  read.push_back(group.destination);
  builder.end_round_if_changed(read);
  std::vector<Value> sums(count, constant_value(0));
  for (int j = 0; j < n; ++j) {
    const auto of_sender = [j](int) { return j; };
    const Variable to =
        builder.receive(fmt::format("destination of {}", j), group.destination, of_sender);
    const Value meant_for_me = equal(builder[to], builder[index]);
    for (size_t k = 0; k < count; ++k) {
      const Variable message =
          builder.receive(fmt::format("{} of {}", group.names[k], j), group.payloads[k], of_sender);
      sums[k] = add(sums[k], select(meant_for_me, builder[message], constant_value(0)));
    }
  }
  std::vector<Variable> arrived;
  for (size_t k = 0; k < count; ++k) {
    // The interval of a sum does not know that all but one of its terms are zero.
    const WordType type = with_zero(builder.type_of(group.payloads[k]));
    arrived.push_back(builder.word(group.names[k], type));
    builder.set(arrived.back(), with_type(sums[k], type));
  }
  return arrived;
}

}  // namespace posattn
