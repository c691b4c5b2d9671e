// A Benes network, one layer for each of its 2 ceil(log2 N) - 1 stages. Its switches are inputs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "posattn/programs/messages/message_group.h"
#include "posattn/programs/messages/route_messages.h"

namespace posattn {
namespace {

// Words that start with what is sent; who sends nothing carries zero to somebody who receives
// nothing.
std::vector<Variable> loaded(ProgramBuilder& builder, const MessageGroup& group) {
  std::vector<Variable> carried;
  for (size_t k = 0; k < group.payloads.size(); ++k) {
    const WordType type = with_zero(builder.type_of(group.payloads[k]));
    carried.push_back(builder.word(group.names[k], type));
    Value message = builder[group.payloads[k]];
    if (group.may_miss(builder)) {
      const Value to = builder[group.destination];
      const Value sends = minimum(at_least(to, constant_value(0)),
                                  at_least(constant_value(builder.processors() - 1), to));
      message = select(sends, message, constant_value(0));
    }
    builder.set(carried.back(), message);
  }
  return carried;
}

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

SwitchStream::SwitchStream(ProgramBuilder& builder, int bits) : builder_(builder), bits_(bits) {
  for (int left = bits; left > 0; left -= bits_per_word) {
    const int64_t highest = (int64_t{1} << std::min(left, bits_per_word)) - 1;
    words_.push_back(
        builder.input(fmt::format("switches{}", words_.size()), WordType::integer(0, highest)));
  }
  if (bits == 0) return;
  open_ = builder.word("switch", WordType::bit());
  shut_ = builder.word("switch off", WordType::bit());
}

void SwitchStream::next() {
  const int in_word = taken_ % bits_per_word;
  const Variable word = words_[taken_ / bits_per_word];
  const int in_all = std::min(bits_ - (taken_ - in_word), bits_per_word);
  const int place = in_all - 1 - in_word;
  Value rest = builder_[word];
  if (in_word > 0) {  // the bit before is still in it; as a word of its own it is taken out exactly
    rest = with_type(subtract(rest, scale(std::ldexp(1.0, place + 1), builder_[open_])),
                     WordType::integer(0, (int64_t{1} << (place + 1)) - 1));
    builder_.set(word, rest);
  }
  const Value bit = at_least(rest, constant_value(std::ldexp(1.0, place)));
  builder_.set(open_, bit);
  builder_.set(shut_, negation(bit));
  ++taken_;
}

Arrivals deliver_by_benes(ProgramBuilder& builder, const std::vector<MessageGroup>& groups,
                          std::vector<SwitchStream>& switches) {
  Arrivals carried;
  for (const MessageGroup& group : groups) carried.push_back(loaded(builder, group));
  for (const std::vector<int32_t>& partners : benes_partners(builder.processors())) {
    for (size_t g = 0; g < groups.size(); ++g) switches[g].next();
    builder.end_round();
    Route route;
    route.sources = partners;
    for (size_t g = 0; g < groups.size(); ++g) {
      const Value open = builder[switches[g].open()], shut = builder[switches[g].shut()];
      for (const Variable word : carried[g]) {
        const Variable other = builder.receive("across", word, route);
        builder.set(word, select(open, builder[other], builder[word], shut));
      }
    }
  }
  return carried;
}

// The switches of Benes networks as inputs: what the network cannot find itself.

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
