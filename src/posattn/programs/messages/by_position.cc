// Destinations that are known before the program runs: who reads from whom is fixed.
#include <fmt/format.h>

#include "posattn/base/error.h"
#include "posattn/programs/messages/message_group.h"

namespace posattn {

std::vector<Variable> deliver_by_position(ProgramBuilder& builder, const MessageGroup& group,
                                          const std::vector<double>& to) {
  const int n = builder.processors();
  Route route;
  route.sources.assign(n, n);
  for (int j = 0; j < n; ++j) {
    if (to[j] < 0 || to[j] >= n) continue;
    int32_t& source = route.sources[static_cast<int>(to[j])];
    if (source != n) {
      throw Error(ExitCode::configuration,
                  fmt::format("machine {} receives 2 messages for '{}'", to[j], group.names[0]),
                  "at most 1: a word holds one message",
                  fmt::format("machines {} and {} send there", source, j));
    }
    source = static_cast<int32_t>(j);
  }
  builder.end_round_if_changed(group.payloads);
  std::vector<Variable> arrived;
  for (size_t k = 0; k < group.payloads.size(); ++k) {
    // A word of its own: the round may have another message of that name.
    arrived.push_back(builder.inferred_word(group.names[k], false));
    builder.set(arrived.back(), builder.receive_value(group.names[k], group.payloads[k], route));
  }
  return arrived;
}

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
