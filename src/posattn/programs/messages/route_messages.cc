#include "posattn/programs/messages/route_messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "posattn/base/enum_names.h"
#include "posattn/base/error.h"
#include "posattn/programs/form/operation.h"
#include "posattn/programs/messages/message_group.h"

namespace posattn {
namespace {

using Numbers = std::vector<double>;  // by processor; empty: not known

class Knowledge {
 public:
  explicit Knowledge(const StaticProgram& program) : program_(program) {
    for (const Word& word : program.words) {
      words_.push_back(word.initial.empty() ? Numbers(program.processors) : word.initial);
    }
    for (const int input : program.inputs) words_[input].clear();
  }

  const std::vector<Numbers>& words() const { return words_; }

  void step(const Round& round) {
    std::vector<Numbers> results;
    for (const Instruction& instruction : round.instructions) {
      results.push_back(result(instruction, round, results));
    }
    for (const Update& update : round.updates) words_[update.word] = results[update.instruction];
  }

 private:
  Numbers received(const Receive& receive) const {
    const Numbers& word = words_[receive.word];
    if (word.empty() || receive.route.is_sent() || receive.route.is_weighted()) return {};
    Numbers numbers;
    for (const int32_t j : receive.route.sources) {
      numbers.push_back(j == program_.processors ? 0 : word[j]);
    }
    return numbers;
  }

  Numbers result(const Instruction& instruction, const Round& round,
                 const std::vector<Numbers>& results) const {
    if (instruction.kind == Operator::Kind::word) return words_[instruction.index];
    if (instruction.kind == Operator::Kind::received)
      return received(round.receives[instruction.index]);
    for (const int operand : instruction.operands) {
      if (results[operand].empty()) return {};
    }
    Numbers numbers;
    std::vector<double> operands(instruction.operands.size());
    for (int i = 0; i < program_.processors; ++i) {
      std::ranges::transform(instruction.operands, operands.begin(),
                             [&](int operand) { return results[operand][i]; });
      numbers.push_back(operation(instruction.kind).value(instruction, operands.data()));
    }
    return numbers;
  }

  const StaticProgram& program_;
  std::vector<Numbers> words_;
};

// Which words hold numbers that no input can change: places known before the program runs. When
// each round begins, the numbers by processor of each word, empty where they depend on the input:
// [rounds][words][processors].
std::vector<std::vector<Numbers>> known_words(const StaticProgram& program) {
  Knowledge knowledge(program);
  std::vector<std::vector<Numbers>> known;
  for (const Round& round : program.rounds) {
    known.push_back(knowledge.words());
    knowledge.step(round);
  }
  return known;
}

// Gathering needs a head for every machine, and N times the words.
constexpr int most_gathered = 64;
// Scores of fp32 tell all places apart up to here, several times over (by_attention.cc).
constexpr int most_attended = 256;
// Up to here `auto` gathers: three layers instead of log^2.
constexpr int few_machines = 32;

// Says the program again to a builder, round by round, with other ways for its messages.
class Router {
 public:
  Router(const StaticProgram& program, Routing routing)
      : program_(program),
        routing_(routing),
        known_(known_words(program)),
        builder_(program.name, program.length, program.processors) {
    builder_.set_task(program.task);
    for (size_t w = 0; w < program.words.size(); ++w) {
      const Word& word = program.words[w];
      const bool is_input =
          std::ranges::find(program.inputs, static_cast<int>(w)) != program.inputs.end();
      words_.push_back(is_input ? Variable{} : builder_.word(word.name, word.type, word.initial));
    }
    for (const int w : program.inputs) {  // in their order
      words_[w] = builder_.input(program.words[w].name, program.words[w].type);
    }
    builder_.keep_promises(program.promises);  // switches come after these inputs
    find_ways();
  }

  RoutedProgram run() {
    for (const int bits : routed_.switch_bits) switches_.emplace_back(builder_, bits);
    for (size_t r = 0; r < program_.rounds.size(); ++r) {
      builder_.begin_origin(static_cast<int>(r));
      replay(static_cast<int>(r));
    }
    std::vector<Variable> outputs;
    for (const int w : program_.outputs) outputs.push_back(words_[w]);
    routed_.program = builder_.finish(outputs);
    return std::move(routed_);
  }

 private:
  void find_ways() {
    for (size_t r = 0; r < program_.rounds.size(); ++r) {
      for (const Receive& receive : program_.rounds[r].receives) {
        if (!receive.route.is_sent()) continue;
        MessageWay* way = find_way(static_cast<int>(r), receive);
        if (way == nullptr) {
          way = &routed_.ways.emplace_back();
          way->round = static_cast<int>(r);
          way->destination = receive.route.destination;
          way->permutation = receive.route.permutation;
          way->by = chosen(*way);
          if (way->by == Routing::benes) add_stream(*way);
        }
        way->words.push_back(receive.name);
      }
    }
  }

  // The first stream that no other way of the round uses.
  void add_stream(MessageWay& way) {
    way.stream = static_cast<int>(std::ranges::count_if(routed_.ways, [&](const MessageWay& other) {
      return other.round == way.round && other.stream >= 0;
    }));
    if (way.stream == static_cast<int>(routed_.switch_bits.size())) {
      routed_.switch_bits.push_back(0);
    }
    routed_.switch_bits[way.stream] += benes_stages(program_.processors);
  }

  MessageWay* find_way(int round, const Receive& receive) {
    const auto same = [&](const MessageWay& way) {
      return way.round == round && way.destination == receive.route.destination &&
             way.permutation == receive.route.permutation;
    };
    const auto found = std::ranges::find_if(routed_.ways, same);
    return found == routed_.ways.end() ? nullptr : &*found;
  }

  Routing chosen(const MessageWay& way) const {
    const int n = program_.processors;
    if (!known_[way.round][way.destination].empty()) return Routing::by_position;
    const auto refused = [&](std::string what, std::string expected, std::string hint) {
      return Error(ExitCode::configuration,
                   fmt::format("{} in round {} of program '{}'", what, way.round, program_.name),
                   std::move(expected), std::move(hint));
    };
    const std::string& word = program_.words[way.destination].name;
    switch (routing_) {
      case Routing::by_position:
        throw refused(fmt::format("messages to '{}', which depends on the input,", word),
                      "destinations known beforehand for --routing static",
                      "--routing sort carries any messages");
      case Routing::gather:
        if (n <= most_gathered) return Routing::gather;
        throw refused(fmt::format("gathering the messages of {} machines", n),
                      fmt::format("at most {}: each needs a head", most_gathered),
                      "--routing sort carries any messages");
      case Routing::attention:
        if (n <= most_attended) return Routing::attention;
        throw refused(fmt::format("attention from the data of {} machines", n),
                      fmt::format("at most {}: scores of fp32 tell so many apart", most_attended),
                      "--routing sort carries any messages");
      case Routing::automatic:
        return n <= few_machines ? Routing::gather : Routing::sort;
      case Routing::sort:
      case Routing::benes:
        break;
    }
    return routing_;
  }

  void replay(int number) {
    const Round& round = program_.rounds[number];
    std::vector<Variable> received(round.receives.size());
    for (const Routing by : {Routing::by_position, Routing::gather, Routing::sort, Routing::benes,
                             Routing::attention}) {
      deliver(number, by, received);
    }
    std::vector<Variable> read;
    for (const Receive& receive : round.receives) {
      if (!receive.route.is_sent()) read.push_back(words_[receive.word]);
    }
    builder_.end_round_if_changed(read);
    for (size_t r = 0; r < round.receives.size(); ++r) {
      const Receive& receive = round.receives[r];
      if (receive.route.is_sent()) continue;
      // A name of its own: the round may read the same word along two routes.
      received[r] = builder_.receive(fmt::format("{} {}", receive.name, r), words_[receive.word],
                                     receive.route);
    }
    for (const int line : round.lines) builder_.note_line(line);
    std::vector<Value> results;
    for (const Instruction& instruction : round.instructions) {
      results.push_back(result(instruction, received, results));
    }
    for (const Update& update : round.updates) {
      builder_.set(words_[update.word], results[update.instruction]);
    }
  }

  Value result(const Instruction& instruction, const std::vector<Variable>& received,
               const std::vector<Value>& results) const {
    Value value;
    if (instruction.kind == Operator::Kind::word) {
      value = builder_[words_[instruction.index]];
    } else if (instruction.kind == Operator::Kind::received) {
      value = builder_[received[instruction.index]];
    } else {
      std::vector<Value> operands;
      for (const int operand : instruction.operands) operands.push_back(results[operand]);
      value = applied(instruction, std::move(operands));
    }
    // What the value is known to be in this round, beyond what its word or its operands say.
    return value->type == instruction.type ? value : with_type(value, instruction.type);
  }

  // All messages of a round that travel alike.
  void deliver(int number, Routing by, std::vector<Variable>& received) {
    const std::vector<Receive>& receives = program_.rounds[number].receives;
    std::vector<const MessageWay*> ways;
    std::vector<MessageGroup> groups;
    std::vector<std::vector<size_t>> members;  // receives of each group
    for (const MessageWay& way : routed_.ways) {
      if (way.round != number || way.by != by) continue;
      ways.push_back(&way);
      MessageGroup& group = groups.emplace_back();
      members.emplace_back();
      group.destination = words_[way.destination];
      group.permutation = way.permutation;
      for (size_t r = 0; r < receives.size(); ++r) {
        const Receive& receive = receives[r];
        if (receive.route.destination != way.destination ||
            receive.route.permutation != way.permutation) {
          continue;
        }
        group.payloads.push_back(words_[receive.word]);
        group.names.push_back(receive.name);
        members.back().push_back(r);
      }
    }
    if (groups.empty()) return;
    const Arrivals arrived = delivered(by, ways, groups);
    for (size_t g = 0; g < groups.size(); ++g) {
      for (size_t k = 0; k < members[g].size(); ++k) received[members[g][k]] = arrived[g][k];
    }
  }

  Arrivals delivered(Routing by, const std::vector<const MessageWay*>& ways,
                     const std::vector<MessageGroup>& groups) {
    if (by == Routing::benes) return deliver_by_benes(builder_, groups, switches_);
    if (by == Routing::sort) return deliver_by_sort(builder_, groups, index());
    if (by == Routing::attention) {
      return deliver_by_attention(builder_, groups, index(), index_square());
    }
    Arrivals arrived;
    for (size_t g = 0; g < groups.size(); ++g) {
      arrived.push_back(by == Routing::gather
                            ? deliver_by_gather(builder_, groups[g], index())
                            : deliver_by_position(builder_, groups[g],
                                                  known_[ways[g]->round][ways[g]->destination]));
    }
    // The round ends, so that what arrived is a word of its own, not a sum of N terms that may each
    // be as large.
    if (by == Routing::gather) builder_.end_round();
    return arrived;
  }

  // The words in which each processor finds its own number, and its square.
  Variable index() { return power_of_index(0); }
  Variable index_square() { return power_of_index(1); }
  Variable power_of_index(int which) {
    if (!index_[which]) {
      std::vector<double> numbers;
      for (int64_t i = 0; i < program_.processors; ++i) {
        numbers.push_back(static_cast<double>(which == 0 ? i : i * i));
      }
      const auto largest = static_cast<int64_t>(numbers.back());
      index_[which] = builder_.word(which == 0 ? "index" : "square of index",
                                    WordType::integer(0, largest), std::move(numbers));
    }
    return *index_[which];
  }

  const StaticProgram& program_;
  Routing routing_;
  std::vector<std::vector<Numbers>> known_;
  ProgramBuilder builder_;
  std::vector<Variable> words_;  // of the program, in the builder
  std::optional<Variable> index_[2];
  std::vector<SwitchStream> switches_;
  RoutedProgram routed_;
};

constexpr EnumNames<Routing, 6> routing_names = {{
    {Routing::automatic, "auto"},
    {Routing::by_position, "static"},
    {Routing::gather, "gather"},
    {Routing::sort, "sort"},
    {Routing::benes, "benes"},
    {Routing::attention, "attention"},
}};

}  // namespace

RoutedProgram route_messages(const StaticProgram& program, Routing routing) {
  if (!program.sends()) return {program, {}, {}};
  return Router(program, routing).run();
}

std::string_view to_string(Routing routing) { return name_of(routing_names, routing); }
Routing parse_routing(const std::string& name) {
  return value_of(routing_names, ExitCode::usage, "routing", name);
}

}  // namespace posattn
