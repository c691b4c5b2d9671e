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

}  // namespace posattn
