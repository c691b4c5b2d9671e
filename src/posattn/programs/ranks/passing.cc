#include "posattn/programs/ranks/passing.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>

namespace posattn {
namespace {

// In which round a place gets the word: 0 for place 1, 1 for places 2 and 3, 2 for 4 to 7, ...
int round_of(int place) { return std::bit_width(static_cast<unsigned>(place)) - 1; }

std::vector<PassedWord> words_read(const Round& round, int machines) {
  std::vector<PassedWord> words;
  for (std::size_t r = 0; r < round.receives.size(); ++r) {
    const Route& route = round.receives[r].route;
    if (route.is_sent()) continue;
    std::map<int, std::set<int>> readers;  // by source
    const auto read = [&](int source, int reader) {
      if (source != reader && source != machines) readers[source].insert(reader);
    };
    for (int reader = 0; reader < machines; ++reader) {
      if (!route.is_weighted()) {
        read(route.sources[reader], reader);
        continue;
      }
      for (const auto& source : route.weighted[reader]) read(source.first, reader);
    }
    for (const auto& [source, all] : readers) {
      words.push_back({static_cast<int>(r), source, {all.begin(), all.end()}});
    }
  }
  return words;
}

}  // namespace

int PassedWord::place_of(int machine) const {
  if (machine == source) return 0;
  const auto found = std::ranges::lower_bound(readers, machine);
  if (found == readers.end() || *found != machine) return -1;
  return static_cast<int>(found - readers.begin()) + 1;
}

Passing::Passing(const Round& round, int machines, int most_words)
    : words_(words_read(round, machines)) {
  const auto messages = std::ranges::count_if(
      round.receives, [](const Receive& receive) { return receive.route.is_sent(); });
  for (int machine = 0; machine < machines && direct_; ++machine) {
    direct_ = sent_by(machine).front() + messages <= most_words;
  }
  if (direct_) return;
  for (const PassedWord& word : words_) {
    rounds_ = std::max(rounds_, round_of(static_cast<int>(word.readers.size())) + 1);
  }
}

int Passing::giver(int place) const {
  return direct_ ? 0 : place - static_cast<int>(std::bit_floor(static_cast<unsigned>(place)));
}

std::vector<int> Passing::takers(const PassedWord& word, int place) const {
  const auto last = static_cast<int>(word.readers.size());
  std::vector<int> places;
  if (direct_) {
    for (int to = 1; place == 0 && to <= last; ++to) places.push_back(to);
    return places;
  }
  for (int step = static_cast<int>(std::bit_ceil(static_cast<unsigned>(place) + 1));
       place + step <= last; step *= 2) {
    places.push_back(place + step);
  }
  return places;
}

std::vector<int> Passing::sent_by(int machine) const {
  std::vector<int> sent(static_cast<std::size_t>(rounds_));
  for (const PassedWord& word : words_) {
    const int place = word.place_of(machine);
    if (place < 0) continue;
    for (const int to : takers(word, place)) ++sent[direct_ ? 0 : round_of(to)];
  }
  return sent;
}

int Passing::received_by(int machine) const {
  return static_cast<int>(std::ranges::count_if(
      words_, [machine](const PassedWord& word) { return word.place_of(machine) > 0; }));
}

}  // namespace posattn
