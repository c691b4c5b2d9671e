// Messages of one round that go the same way, and those who deliver them. Each writes what arrives
// into words of its own, with statements of the builder: zero where nothing does.
#pragma once

#include <cstdint>
#include <span>

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
Arrivals deliver_by_attention(ProgramBuilder& builder, const std::vector<MessageGroup>& groups,
                              Variable index, Variable index_square);
// Each group with a stream of its own.
Arrivals deliver_by_benes(ProgramBuilder& builder, const std::vector<MessageGroup>& groups,
                          std::vector<SwitchStream>& switches);

// A Benes network: fixed wires and switches that carry any permutation of N ports in
// 2 ceil(log2 N) - 1 stages. Pairs of neighbours meet in the first and last stage; between them the
// ports of even and of odd index are networks of their own. For an odd N the last port has no
// neighbour and belongs to the even, larger half (Chang and Melhem, "Arbitrary size Benes
// networks", 1997). How switches are set depends on the whole permutation: the network does not
// route itself.

int benes_stages(int ports);

// Whom each port meets in each stage, itself where it meets nobody: [stages][ports].
std::vector<std::vector<int32_t>> benes_partners(int ports);

// Whether each port takes its partner's word, so that the word of port i arrives at
// permutation[i]: [stages][ports]. By looping; throws std::logic_error for what is no permutation.
std::vector<std::vector<bool>> benes_switches(std::span<const int32_t> permutation);

// Batcher's bitonic sorting network is normalised here: the first step of a merge is mirrored and
// the minimum always goes to the lower place, so that for any number of places a comparator whose
// partner is missing is left out. With k = ceil(log2 places) it has k (k + 1) / 2 stages.

// Whom each place meets in each stage, itself where it meets nobody: [stages][places].
std::vector<std::vector<int32_t>> sorting_partners(int places);

}  // namespace posattn
