// Forward pass of models whose attention reads fixed places (ModelSpec::routed): gathers and sparse
// maps instead of products, so that a compiled program of a million nodes runs in seconds.
//
// With A_h x the row that a node reads through head h, hidden units are
//   relu(W1 [x | concat_h(A_h V_h x) O] + b) = relu(W1x x + sum_h (W1o O_h V_h) (A_h x) + b')
// where b' takes in the biases of V and O, since rows of A sum to one. All zeros are skipped. Whole
// numbers are exact in any order while their partial sums are; reals round as they do in the plain
// network, in the order of the columns.
//
// A token's row of the table is the node's input, or is added to it, as in the plain network.
//
// A tile of samples lies as [node][column][sample]: loops over samples are vector operations and a
// gathered row is contiguous.
#pragma once

#include <cstdint>
#include <vector>

#include "posattn/model/spec/parameters.h"
#include "posattn/model/spec/spec.h"

namespace posattn {

// Sums of scaled rows: row r of the result is bias[r] + sum of weight x column of a source.
template <class T>
struct SparseMap {
  struct Term {
    int32_t source;  // which of the rows given; the only one is 0
    int32_t column;
    T weight;
  };
  std::vector<Term> terms;
  std::vector<int64_t> begin = {0};  // of each row's terms, and the end
  std::vector<T> bias;

  int rows() const { return static_cast<int>(bias.size()); }
  // Ends a row: the terms that were added since the last one.
  void close_row(T of_row) {
    begin.push_back(static_cast<int64_t>(terms.size()));
    bias.push_back(of_row);
  }
};

// T: float or double.
template <class T>
class RoutedNetwork {
 public:
  // Throws Error(configuration) for routes that are no nodes.
  RoutedNetwork(const ModelSpec& spec, const Parameters<float>& parameters);

  // inputs [samples, real_nodes, data_columns], outputs [samples, real_nodes, output_columns], and
  // tokens [samples, real_nodes] of a model that has a vocabulary. Threads share the samples, or
  // the nodes where these are many and samples few; the result is the same.
  void forward(const T* inputs, int64_t samples, T* outputs, int threads = 1,
               const int32_t* tokens = nullptr) const;

  // The states of one sample, [depth + 1, nodes, width]: encoded, then after each layer.
  std::vector<T> states(const T* input, const int32_t* tokens = nullptr) const;

 private:
  struct Read {
    int32_t node;
    T weight;
  };
  // The places that one head of a layer reads.
  struct Head {
    int source = 0;              // of the terms that use it
    std::vector<int32_t> node;   // of each node, or -1: a weighted sum
    std::vector<int64_t> begin;  // of each node's weighted reads, and the end; empty without any
    std::vector<Read> reads;
    std::vector<int32_t> columns;  // that any term uses
  };
  struct Layer {
    std::vector<Head> heads;         // those that are used
    std::vector<SparseMap<T>> maps;  // of the MLP; the first is over the own row and the heads'
  };
  struct ThreadMemory;
  struct Workspace;

  // What samples hold, from the first one of a tile on.
  struct Given {
    const T* inputs;
    const int32_t* tokens;
  };

  Layer make_layer(const Parameters<float>& parameters, int index) const;
  Head make_head(const Parameters<float>& parameters, int layer, int head) const;

  template <int lanes>
  void run(Given given, int64_t samples, T* outputs, int threads) const;
  template <int lanes>
  void run_tile(Given given, int samples, T* outputs, Workspace& work) const;
  template <int lanes>
  void encode(Given given, int samples, int first, int last, ThreadMemory& memory, T* state) const;
  template <int lanes>
  void run_layer(const Layer& layer, const T* state, int first, int last, ThreadMemory& memory,
                 T* next) const;
  template <int lanes>
  void decode(const T* state, int samples, int first, int last, ThreadMemory& memory,
              T* outputs) const;
  Workspace make_workspace(int lanes, int threads) const;

  ModelSpec spec_;
  SparseMap<T> encoder_;      // over data columns
  std::vector<T> tokens_;     // [vocabulary, width]
  std::vector<T> positions_;  // [nodes, width], what P adds to the input; empty without
  std::vector<Layer> layers_;
  SparseMap<T> decoder_;
};

// Attention [depth, heads, nodes, nodes] as the routes say. Throws Error(configuration) where that
// would be absurdly large.
std::vector<float> routed_attention(const ModelSpec& spec, const Parameters<float>& parameters);

}  // namespace posattn
