// The switches of Benes networks as inputs: what the network cannot find itself.
#include <algorithm>

#include "posattn/programs/messages/benes_network.h"
#include "posattn/programs/messages/message_group.h"
#include "posattn/programs/messages/route_messages.h"

namespace posattn {
namespace {

// To places that are all different: who sends nothing gets what is left, in order.
std::vector<int32_t> completed(std::vector<int32_t> to) {
  const auto n = static_cast<int32_t>(to.size());
  std::vector<bool> taken(n);
  for (const int32_t place : to) {
    if (place < n) taken[place] = true;
  }
  int32_t free = 0;
  for (int32_t& place : to) {
    if (place < n) continue;
    while (taken[free]) ++free;
    place = free++;
  }
  return to;
}

// Bits [streams][bits][processors] for one input, in the order in which the network takes them.
std::vector<std::vector<std::vector<bool>>> switch_bits(const StaticProgram& program,
                                                        const RoutedProgram& routed,
                                                        std::span<const double> input) {
  const std::vector<double> trace = trace_static(program, input);
  const auto processors = static_cast<size_t>(program.processors);
  std::vector<std::vector<std::vector<bool>>> bits(routed.switch_bits.size());
  for (const MessageWay& way : routed.ways) {
    if (way.by != Routing::benes) continue;
    std::vector<int32_t> to(processors);
    for (size_t i = 0; i < processors; ++i) {
      const double place =
          trace[(way.round * processors + i) * program.words.size() + way.destination];
      const bool sends = place >= 0 && place < program.processors;
      to[i] = sends ? static_cast<int32_t>(place) : program.processors;
    }
    std::ranges::copy(benes_switches(completed(std::move(to))),
                      std::back_inserter(bits[way.stream]));
  }
  return bits;
}

}  // namespace

template <class T>
std::vector<T> routed_inputs(const StaticProgram& program, const RoutedProgram& routed,
                             std::span<const T> inputs, int64_t samples) {
  if (routed.switch_bits.empty()) return {inputs.begin(), inputs.end()};
  const int64_t n = program.processors;
  const auto own = static_cast<int64_t>(program.inputs.size());
  const auto all = static_cast<int64_t>(routed.program.inputs.size());
  std::vector<T> result(samples * n * all);
  for (int64_t s = 0; s < samples; ++s) {
    const std::span<const T> sample = inputs.subspan(s * n * own, n * own);
    const auto bits =
        switch_bits(program, routed, std::vector<double>(sample.begin(), sample.end()));
    for (int64_t i = 0; i < n; ++i) {
      T* row = &result[(s * n + i) * all];
      std::ranges::copy(sample.subspan(i * own, own), row);
      T* word = row + own;
      for (const auto& stream : bits) {
        for (size_t b = 0; b < stream.size(); ++b) {
          if (b > 0 && b % SwitchStream::bits_per_word == 0) ++word;
          *word = 2 * *word + (stream[b][i] ? T{1} : T{0});
        }
        ++word;
      }
    }
  }
  return result;
}
template std::vector<float> routed_inputs<float>(const StaticProgram&, const RoutedProgram&,
                                                 std::span<const float>, int64_t);
template std::vector<double> routed_inputs<double>(const StaticProgram&, const RoutedProgram&,
                                                   std::span<const double>, int64_t);

}  // namespace posattn
