// Attention matrices as heat maps: one row per layer, one column per head; a row of a map shows
// where one node looks.
#pragma once

#include <string>
#include <vector>

namespace posattn {

// `attention` is [depth, heads, nodes, nodes], the last `scratch_nodes` nodes being scratch nodes.
// One <svg> element. Above 64 nodes a cell stands for a block of nodes: the attention that a node
// of the block's rows pays on average to all nodes of its columns.
// `scale_end` is the weight of the strongest colour: drawings that are compared share it.
std::string attention_svg(const std::vector<float>& attention, int depth, int heads, int nodes,
                          int scratch_nodes, const std::string& title, double scale_end);

// What these maps need: their largest weight, rounded up to a tenth where it is not very small.
double attention_scale_end(const std::vector<float>& attention, int depth, int heads, int nodes);

}  // namespace posattn
