// Messages of one round that go the same way, and those who deliver them. Each writes what arrives
// into words of its own, with statements of the builder: zero where nothing does.
#pragma once

#include <string>
#include <vector>

#include "posattn/programs/form/builder.h"

namespace posattn {

struct MessageGroup {
  std::vector<Variable> payloads;  // what is sent
  std::vector<std::string> names;  // of what arrives
  Variable destination;            // an integer; outside 0 .. processors - 1: nothing is sent
  bool permutation = false;        // everybody sends, to places that are all different

  // Whether somebody may send nothing, as far as the destination's type says.
  bool may_miss(const ProgramBuilder& builder) const {
    return !permutation || builder.type_of(destination).low < 0 ||
           builder.type_of(destination).high >= builder.processors();
  }
};

// Switches of a Benes network: words whose bits are taken one after the other, the highest first.
class SwitchStream {
 public:
  // Adds as many words to the inputs of the program as `bits` need.
  SwitchStream(ProgramBuilder& builder, int bits);

  // Makes the next bit the one that `open` holds, with its complement in `shut`: two rails, so that
  // a selection by them is one layer deep.
  void next();
  Variable open() const { return open_; }
  Variable shut() const { return shut_; }

  // 22 bits a word: a comparison adds up to 1.5 times the word's range, which must stay below 2^24.
  static constexpr int bits_per_word = 22;

 private:
  ProgramBuilder& builder_;
  int bits_, taken_ = 0;
  std::vector<Variable> words_;
  Variable open_, shut_;
};

// Several groups travel at the same time, where that saves layers. What arrives: a word for each
// payload of each group.
using Arrivals = std::vector<std::vector<Variable>>;

// Destinations that are known: `to` says where each processor's go; outside 0 .. processors - 1:
// nowhere.
std::vector<Variable> deliver_by_position(ProgramBuilder& builder, const MessageGroup& group,
                                          const std::vector<double>& to);
std::vector<Variable> deliver_by_gather(ProgramBuilder& builder, const MessageGroup& group,
                                        Variable index);
Arrivals deliver_by_sort(ProgramBuilder& builder, const std::vector<MessageGroup>& groups,
                         Variable index);
// Each group with a stream of its own.
Arrivals deliver_by_benes(ProgramBuilder& builder, const std::vector<MessageGroup>& groups,
                          std::vector<SwitchStream>& switches);

}  // namespace posattn
