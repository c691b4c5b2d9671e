#include "posattn/programs/ranks/run_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "posattn/base/error.h"
#include "posattn/programs/form/local_step.h"
#include "posattn/programs/ranks/passing.h"

namespace posattn {
namespace {

// Those words of destinations that a round's messages go by, each once.
std::vector<int> destinations_of(const Round& round) {
  std::vector<int> words;
  for (const Receive& receive : round.receives) {
    const int word = receive.route.destination;
    if (receive.route.is_sent() && std::ranges::find(words, word) == words.end()) {
      words.push_back(word);
    }
  }
  return words;
}

class RankMachine {
 public:
  RankMachine(const StaticProgram& program, std::span<const double> input, Ranks& ranks)
      : program_(program),
        ranks_(ranks),
        me_(ranks.rank()),
        all_(ranks.size()),
        words_(program.words.size()) {
    for (std::size_t w = 0; w < words_.size(); ++w) {
      const std::vector<double>& initial = program.words[w].initial;
      words_[w] = initial.empty() ? 0.0 : initial[me_];
    }
    for (std::size_t c = 0; c < input.size(); ++c) words_[program.inputs[c]] = input[c];
  }

  MachineRun run() {
    bool going = true;
    for (round_ = 0; going && round_ < static_cast<int>(program_.rounds.size()); ++round_) {
      going = step(program_.rounds[round_]);
    }
    if (going) expect({});  // those who failed in the last round are heard of
    if (problem_) throw *problem_;
    for (const int word : program_.outputs) run_.outputs.push_back(words_[word]);
    return run_;
  }

 private:
  // False where the program cannot go on, on every machine.
  bool step(const Round& round) {
    const std::vector<int> destinations = destinations_of(round);
    const Passing passing(round, all_, machine_words(program_));
    count_words(round, passing);
    if (!expect(destinations)) return false;
    if (!fits(round, destinations)) return false;
    run_.rounds += passing.rounds();
    received_words_ = 0;
    received_.assign(round.receives.size(), 0);
    send_messages(round, destinations);
    send_words(round, passing);
    receive_messages(round, destinations);
    receive_words(round, passing);
    run_.most_received = std::max(run_.most_received, received_words_);
    try {
      limit(received_words_, "receives");
      std::vector<double> next = words_;
      local_.run(round, words_.data(), received_.data(), next.data());
      local_.check(program_, round_, me_);
      words_ = std::move(next);
    } catch (const Error& error) {
      problem_ = error;
    }
    return true;
  }

  // The machine that `word` names; none: all_.
  int target(int word) const {
    const double to = words_[word];
    return to >= 0 && to < static_cast<double>(all_) ? static_cast<int>(to) : all_;
  }

  void limit(int count, const char* does) const {
    const int most = machine_words(program_);
    if (count <= most) return;
    throw Error(
        ExitCode::data,
        fmt::format("machine {} {} {} words in {} of program '{}'", me_, does, count,
                    place_of(program_, round_), program_.name),
        fmt::format("at most s = {}: the words that a machine keeps, and those of its receives",
                    most),
        "--level mpc runs it without this limit");
  }

  // What is known before anything is sent. Messages by data are part of the first round of MPC.
  void count_words(const Round& round, const Passing& passing) {
    std::vector<int> sent = passing.sent_by(me_);
    for (const Receive& receive : round.receives) {
      if (!receive.route.is_sent()) continue;
      const int to = target(receive.route.destination);
      sent.front() += to != me_ && to != all_ ? 1 : 0;
    }
    const int most = std::ranges::max(sent);
    run_.most_sent = std::max(run_.most_sent, most);
    try {
      limit(passing.received_by(me_), "receives");
      limit(most, "sends");
    } catch (const Error& error) {
      if (!problem_) problem_ = error;
    }
  }

  // What everybody is about to hear, in arrivals_; false where a machine has failed.
  bool expect(const std::vector<int>& destinations) {
    arrivals_.assign(destinations.size() * all_ + 1, 0);
    for (std::size_t g = 0; g < destinations.size(); ++g) {
      const int to = target(destinations[g]);
      if (to != all_) arrivals_[g * all_ + to] = 1;
    }
    arrivals_.back() = problem_ ? 1 : 0;
    ranks_.sum(arrivals_);
    return arrivals_.back() == 0;
  }

  // Whether every word gets the one message that it holds; all machines find the same.
  bool fits(const Round& round, const std::vector<int>& destinations) {
    for (const Receive& receive : round.receives) {
      if (!receive.route.is_sent()) continue;
      const double* arrivals = arrivals_.data() + group_of(receive, destinations) * all_;
      const double* most = std::find_if(arrivals, arrivals + all_, [](double n) { return n > 1; });
      if (most == arrivals + all_ && receive.route.permutation) {
        most = std::find(arrivals, arrivals + all_, 0.0);
      }
      if (most == arrivals + all_) continue;
      problem_ = wrong_messages(program_, round_, receive, static_cast<int>(most - arrivals),
                                static_cast<int>(*most));
      return false;
    }
    return true;
  }

  static std::size_t group_of(const Receive& receive, const std::vector<int>& destinations) {
    return std::ranges::find(destinations, receive.route.destination) - destinations.begin();
  }

  // Messages by data carry all words of their way.
  void send_messages(const Round& round, const std::vector<int>& destinations) {
    for (std::size_t g = 0; g < destinations.size(); ++g) {
      const int to = target(destinations[g]);
      if (to == all_ || to == me_) continue;
      std::vector<double> load;
      for (const Receive& receive : round.receives) {
        if (receive.route.destination == destinations[g]) load.push_back(words_[receive.word]);
      }
      send(to, static_cast<int>(g), load);
    }
  }

  // By fixed patterns each word goes alone.
  void send_words(const Round& round, const Passing& passing) {
    for (const PassedWord& word : passing.words()) {
      if (word.source != me_) continue;
      give(round, passing, word, 0, words_[round.receives[word.receive].word]);
    }
  }

  void give(const Round& round, const Passing& passing, const PassedWord& word, int place,
            double value) {
    for (const int to : passing.takers(word, place)) {
      send(word.machine_at(to), fixed_tag(round, word), {value});
    }
  }

  void receive_messages(const Round& round, const std::vector<int>& destinations) {
    for (std::size_t g = 0; g < destinations.size(); ++g) {
      if (arrivals_[g * all_ + me_] == 0) continue;
      const bool from_me = target(destinations[g]) == me_;
      const std::vector<double> load =
          from_me ? std::vector<double>() : receive(Ranks::any, static_cast<int>(g));
      auto next = load.begin();
      for (std::size_t r = 0; r < round.receives.size(); ++r) {
        if (round.receives[r].route.destination != destinations[g]) continue;
        received_[r] = from_me ? words_[round.receives[r].word] : *next++;
      }
    }
  }

  // Words come, and are passed on, in the same order everywhere: nobody waits for one who waits.
  void receive_words(const Round& round, const Passing& passing) {
    std::map<std::pair<int, int>, double> came;  // by receive and source
    for (const PassedWord& word : passing.words()) {
      const int place = word.place_of(me_);
      if (place <= 0) continue;
      const int from = word.machine_at(passing.giver(place));
      const double value = receive(from, fixed_tag(round, word)).front();
      came[{word.receive, word.source}] = value;
      give(round, passing, word, place, value);
    }
    for (int r = 0; r < static_cast<int>(round.receives.size()); ++r) {
      const Route& route = round.receives[r].route;
      const auto word_of = [&](int machine) {
        if (machine == all_) return 0.0;
        return machine == me_ ? words_[round.receives[r].word] : came.at({r, machine});
      };
      if (route.is_weighted()) {
        for (const auto& source : route.weighted[me_]) {
          received_[r] += source.second * word_of(source.first);
        }
      } else if (!route.is_sent()) {
        received_[r] = word_of(route.sources[me_]);
      }
    }
  }

  // Below them are the ways of data. One machine passes words of several others on to the same one.
  int fixed_tag(const Round& round, const PassedWord& word) const {
    return static_cast<int>(round.receives.size()) + word.receive * all_ + word.source;
  }

  void send(int to, int tag, const std::vector<double>& load) {
    ranks_.send(to, tag,
                {reinterpret_cast<const char*>(load.data()), load.size() * sizeof(double)});
    ++run_.messages;
  }
  std::vector<double> receive(int from, int tag) {
    const std::string bytes = ranks_.receive(from, tag).bytes;
    std::vector<double> load(bytes.size() / sizeof(double));
    std::memcpy(load.data(), bytes.data(), load.size() * sizeof(double));
    received_words_ += static_cast<int>(load.size());
    return load;
  }

  const StaticProgram& program_;
  Ranks& ranks_;
  int me_, all_, round_ = 0;
  std::vector<double> words_, received_;
  std::vector<double> arrivals_;  // [way of data][machine], then how many have failed
  int received_words_ = 0;        // in this round, from others
  LocalStep<double> local_;
  std::optional<Error> problem_;
  MachineRun run_;
};

}  // namespace

int machine_words(const StaticProgram& program) {
  std::size_t receives = 0;
  for (const Round& round : program.rounds) receives = std::max(receives, round.receives.size());
  return static_cast<int>(program.words.size() + receives);
}

MachineRun run_machine(const StaticProgram& program, std::span<const double> input, Ranks& ranks) {
  return RankMachine(program, input, ranks).run();
}

}  // namespace posattn
