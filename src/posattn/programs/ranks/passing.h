// How words travel that machines read by fixed patterns, so that no machine sends more than s words
// in a round of MPC. Mostly each reader gets the word from the machine that has it. Where that is
// too much for one, as for a broadcast, a round of the program takes several of MPC: in each,
// everybody who has a word gives it to one more reader, so that f readers have it after
// ceil(log2(f + 1)). Who that is follows from the pattern, which all machines know.
#pragma once

#include <vector>

#include "posattn/programs/form/static_program.h"

namespace posattn {

// A word that others read from `source`. Place 0 has it, place k > 0 is readers[k - 1].
struct PassedWord {
  int receive = 0, source = 0;
  std::vector<int> readers;  // ascending, without the source itself

  int place_of(int machine) const;  // -1: it takes no part
  int machine_at(int place) const { return place == 0 ? source : readers[place - 1]; }
};

class Passing {
 public:
  // Of a round's fixed patterns; a machine may send `most_words`, of which its messages by data
  // come first.
  Passing(const Round& round, int machines, int most_words);

  const std::vector<PassedWord>& words() const { return words_; }  // by receive and source
  int rounds() const { return rounds_; }                           // of MPC
  // Who gives the word to a place above 0, and whom a place gives it to.
  int giver(int place) const;
  std::vector<int> takers(const PassedWord& word, int place) const;
  // Words that a machine sends in each of the rounds, and receives in all.
  std::vector<int> sent_by(int machine) const;
  int received_by(int machine) const;

 private:
  std::vector<PassedWord> words_;
  bool direct_ = true;
  int rounds_ = 1;
};

}  // namespace posattn
