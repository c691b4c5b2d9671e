// The numbers of a collapsed network as one vector: what a certificate's noise acts on.
//
// Attention from positions is a softmax of free scores [nodes, nodes] for each head, instead of
// queries and keys: a row of scores and the same row plus a constant mean one attention, so rows
// start with mean 0. A network without biases has no offsets here, and stays without.
#pragma once

#include "posattn/bounds/collapsed_network.h"

namespace posattn::bounds {

// A matrix inside the vector; offsets and score offsets have one column.
struct CoordinateTensor {
  int64_t first = 0;
  int rows = 0, columns = 0;

  int64_t size() const { return static_cast<int64_t>(rows) * columns; }
};

struct CoordinateLayer {
  int in = 0, out = 0;
  std::vector<int64_t> maps;           // T_0 .. T_H [out, in]
  int64_t offset = -1;                 // t [out]; -1: none
  std::vector<int64_t> scores;         // of each head: [nodes, nodes] or M_h [in, in]
  std::vector<int64_t> score_offsets;  // mu_h [in]; attention from data only
};

// Coordinates that share one scale of the prior, such as the maps of all heads of a layer.
struct CoordinateGroup {
  std::string name;
  int64_t first = 0, size = 0;
};

class Coordinates {
 public:
  Coordinates(const CollapsedNetwork& network, bool offsets);

  bool positional() const { return positional_; }
  int nodes() const { return nodes_; }
  int real_nodes() const { return real_nodes_; }
  int heads() const { return heads_; }
  int64_t size() const { return size_; }
  const std::vector<CoordinateLayer>& layers() const { return layers_; }
  int64_t output() const { return output_; }                // w
  int64_t output_offset() const { return output_offset_; }  // c; -1: none
  // Everything, in order and without gaps.
  const std::vector<CoordinateTensor>& tensors() const { return tensors_; }
  const std::vector<CoordinateGroup>& groups() const { return groups_; }

  // Those of a network of this shape.
  std::vector<float> values(const CollapsedNetwork& network) const;

 private:
  // A tensor behind the others, in the last group if that has this name.
  int64_t add(const std::string& group, int rows, int columns);

  bool positional_ = true;
  int nodes_ = 0, real_nodes_ = 0, heads_ = 0;
  int64_t size_ = 0, output_ = 0, output_offset_ = -1;
  std::vector<CoordinateLayer> layers_;
  std::vector<CoordinateTensor> tensors_;
  std::vector<CoordinateGroup> groups_;
};

}  // namespace posattn::bounds
