// Attention matrices as heat maps: one row per layer, one column per head; a row of a map shows
// where one node looks. Weights below 0 have a colour of their own. The legend says how large
// weights are, and what rows add up to where that is not 1.
#pragma once

#include <string>
#include <vector>

namespace posattn {

// Attention on one input, [depth, heads, nodes, nodes].
struct AttentionMaps {
  std::string caption;  // on which input
  int depth = 0, heads = 0, nodes = 0;
  int scratch_nodes = 0;  // the last ones
  std::vector<float> weights;
  std::vector<std::string> names = {};  // what the real nodes hold; empty: they have numbers
  int first_node = 0;                   // the number of the first one, where others are left out
  bool whole = true;                    // none is left out

  std::string number(int node) const;  // "12", or "s" for a scratch node
  std::string name(int node) const;    // what it holds, or its number
  // The name with the number: "12 a".
  std::string full_name(int node) const;
};

// Real nodes `first` to `last` alone.
AttentionMaps part_of(const AttentionMaps& maps, int first, int last);

// One <svg> element. Above 64 nodes a cell stands for a block of nodes: the attention that a node
// of the block's rows pays on average to all nodes of its columns. Where nodes have names and a
// cell each, every cell's name is there.
// `scale_end` is the weight of the strongest colour: drawings that are compared share it.
std::string attention_svg(const AttentionMaps& maps, const std::string& title, double scale_end);

// What these maps need: their largest weight by magnitude, rounded up to a tenth where it is not
// very small, to two digits where it is above 1.
double attention_scale_end(const AttentionMaps& maps);

}  // namespace posattn
