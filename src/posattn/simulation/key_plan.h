// Who takes which keys, where the nodes of a standard Transformer have copies in a positional one.
//
// Copy c of node i takes the keys that stand c, c + copies, c + 2 copies, ... places before i,
// around the ring of nodes, one in each step. Then copies combine their sums in pairs, 2^round
// apart, until copy 0 knows them all. So the last node, which stays zero, follows `copies` times
// all nodes.
//
// Where scores know the distance of two nodes (`rotated`), each step is of one distance for all
// nodes, so that it is part of the step's linear maps. That takes one copy, and steps for the nodes
// that come after too, instead of a way around the ring, unless they are masked.
#pragma once

#include <bit>

namespace posattn::simulation {

struct KeyPlan {
  int nodes = 0, copies = 1;  // of the original; of each node
  bool causal = false, rotated = false;

  bool reads_later() const { return rotated && !causal; }
  int steps() const { return reads_later() ? 2 * nodes - 1 : (nodes + copies - 1) / copies; }
  // How far a copy's key stands before its node: after it, where this is negative.
  int distance(int copy, int step) const {
    const int all = copy + step * copies;
    return reads_later() && all >= nodes ? nodes - 1 - all : all;
  }
  int rounds() const { return std::bit_width(static_cast<unsigned>(copies - 1)); }
  // How often a copy combines two sums: in each step but the first, and in each round.
  int combinations() const { return steps() - 1 + rounds(); }
  // Layers for each layer of the original: steps, one for the last step's sum, rounds, exp, MLP.
  int layers() const { return steps() + (steps() > 1 ? 1 : 0) + rounds() + 2; }

  int all_nodes() const { return nodes * copies + 1; }
  int node(int i, int copy) const { return copy * nodes + i; }

  // -1 where there is none: all keys are taken, or the key is behind a causal mask. The keys behind
  // a mask come last, since a copy goes backwards.
  int key(int i, int copy, int step) const {
    const int before = distance(copy, step);
    if (before >= nodes || ((causal || rotated) && before > i) || i - before >= nodes) return -1;
    return (i - before + nodes) % nodes;
  }
  // Whether some copy takes no key in a step. (In every round some take in no sums.)
  bool misses_keys(int step) const { return causal || rotated || (step + 1) * copies > nodes; }
  // The copy whose sums copy c takes in; -1: none.
  int partner(int copy, int round) const {
    const int distance = 1 << round;
    return copy % (2 * distance) == 0 && copy + distance < copies ? copy + distance : -1;
  }
};

}  // namespace posattn::simulation
