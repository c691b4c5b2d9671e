// The positional network that does what folded layers and their tables say.
//
// A node for every pair (i, j) of the original's N nodes, and the scratch node, which stays zero.
// All nodes of row i hold the words u_i of node i. The first nodes are the diagonal (i, i) of the
// real nodes: only there numbers come in and go out, all other nodes are scratch nodes. Two heads:
// one reads a single place, (j, j) for what belongs to j, the other the mean of row i.
#pragma once

#include <vector>

#include "posattn/simulation/calibration.h"

namespace posattn::simulation {

// Layers of a copy for each of the original's: A, M (ceil(log2 N)), B, C, D, E.
int layers_each(int nodes);
// The node of pair (i, j).
int pair_node(int real_nodes, int nodes, int i, int j);

// Task, length and range are the original's.
Model construct(const StandardNetwork& network, const std::vector<FoldedLayer>& layers,
                const std::vector<std::vector<FittedTable>>& tables, const ModelOrigin& origin);

}  // namespace posattn::simulation
