// The cost of one new node of a stream: a layer of attention over the last n nodes, computed anew
// or from what is kept of earlier nodes (model/attention/memory.h).
#pragma once

#include <string>
#include <vector>

namespace posattn {

// How the layer answers for the newest node.
struct StreamForm {
  std::string name;  // "keys and values"
  std::string kind;  // of attention
  bool causal = false;
  bool anew = false;  // the whole window for every node
};
const std::vector<StreamForm>& stream_forms();

struct StreamCost {
  double node_seconds = 0;
  double multiply_adds = 0;            // of a node, linear maps included
  double attention_multiply_adds = 0;  // of these, without the linear maps
};

// One layer of the paper's sizes at initial weights; low-rank attention with `landmarks`. On one
// thread.
StreamCost measure_stream(const StreamForm& form, int window, int landmarks, double seconds);

}  // namespace posattn
