// Who takes which keys, where the nodes of a standard Transformer have copies in a positional one.
//
// Copy c of node i takes the keys that stand c, c + copies, c + 2 copies, ... places before i,
// around the ring of nodes, one in each step. Then copies combine their sums in pairs, 2^round
// apart, until copy 0 knows them all. So the last node, which stays zero, follows `copies` times
// all nodes.
#pragma once

#include <bit>

namespace posattn::simulation {

struct KeyPlan {
  int nodes = 0, copies = 1;  // of the original; of each node
  bool causal = false;

  int steps() const { return (nodes + copies - 1) / copies; }
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
    const int distance = copy + step * copies;
    if (distance >= nodes || (causal && distance > i)) return -1;
    return (i - distance + nodes) % nodes;
  }
  // Whether some copy takes no key in a step. (In every round some take in no sums.)
  bool misses_keys(int step) const { return causal || (step + 1) * copies > nodes; }
  // The copy whose sums copy c takes in; -1: none.
  int partner(int copy, int round) const {
    const int distance = 1 << round;
    return copy % (2 * distance) == 0 && copy + distance < copies ? copy + distance : -1;
  }
};

}  // namespace posattn::simulation
