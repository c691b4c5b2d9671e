// What one layer keeps of the nodes that a sample has read, so that a new node costs one row of
// attention and not a whole sample. Each row of weightings says what that is: keys and values,
// sums, or something of its own.
#pragma once

#include <cstdint>
#include <memory>

#include "posattn/model/attention/rows.h"

namespace posattn {

template <class T>
struct MemoryShape {
  int64_t heads = 1, key_size = 0, head_size = 0;
  T factor = 1;        // of the products of queries and keys
  int64_t window = 0;  // a node attends to the last ones, itself among them; 0: to all earlier ones
  int64_t landmarks = 0;
  // Scores of positions, [heads, nodes, nodes], or null. Nodes beyond them count as the last one,
  // at the end of a window of as many nodes.
  const T* positions = nullptr;
  int64_t nodes = 0;
};

// The next nodes of the sample, in their order.
template <class T>
struct NewNodes {
  int64_t count = 0;
  const T* query_key = nullptr;  // [count, heads, 2 d_k]; null: scores of positions alone
  const T* values = nullptr;     // [count, heads, d_v]
  T* mixed = nullptr;            // [count, heads, d_v] =
};

template <class T>
class NodeMemory {
 public:
  virtual ~NodeMemory() = default;
  virtual void read(const NewNodes<T>& nodes) = 0;
};

// Null where a weighting needs all nodes of a sample at once.
template <class T>
std::unique_ptr<NodeMemory<T>> make_memory(Weighting weighting, const MemoryShape<T>& shape);

}  // namespace posattn
