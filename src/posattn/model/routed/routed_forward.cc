#include <algorithm>

#include "posattn/base/parallel.h"
#include "posattn/model/routed/routed_network.h"
#include "posattn/tensor/buffer.h"

namespace posattn {
namespace {

// `lanes` numbers in registers, in the compiler's own vector type; every target has 16 bytes.
template <class T, int lanes>
struct Lanes {
  static constexpr int parts = lanes * static_cast<int>(sizeof(T)) / 16;
  typedef T Part __attribute__((vector_size(16), may_alias));
  Part part[parts];
};
template <class T>
struct Lanes<T, 1> {
  static constexpr int parts = 1;
  using Part = T;
  Part part[1];
};

// out [rows, lanes] = map(sources), each a row [columns, lanes].
template <int lanes, bool relu, class T>
void apply(const SparseMap<T>& map, const T* const* sources, T* out) {
  using Sum = Lanes<T, lanes>;
  using Part = typename Sum::Part;
  const auto* term = map.terms.data();
  for (int r = 0; r < map.rows(); ++r, out += lanes) {
    const auto* const end = map.terms.data() + map.begin[r + 1];
    Sum sum;
#pragma GCC unroll 8
    for (int p = 0; p < Sum::parts; ++p) sum.part[p] = map.bias[r] - Part{};
    for (; term != end; ++term) {
      const T weight = term->weight;
      const auto* x =
          reinterpret_cast<const Part*>(sources[term->source] + int64_t{lanes} * term->column);
#pragma GCC unroll 8
      for (int p = 0; p < Sum::parts; ++p) sum.part[p] += weight * x[p];
    }
#pragma GCC unroll 8
    for (int p = 0; p < Sum::parts; ++p) {
      // Written so that NaN stays.
      const Part value = sum.part[p];
      reinterpret_cast<Part*>(out)[p] = relu ? (value < 0 ? Part{} : value) : value;
    }
  }
}

// body(first, last, thread) over blocks of nodes. Bodies do not throw.
template <class Body>
void for_nodes(int nodes, int threads, const Body& body) {
  constexpr int block = 512;
  const int blocks = (nodes + block - 1) / block;
  if (threads == 1 || blocks == 1) {
    body(0, nodes, 0);
    return;
  }
#pragma omp parallel for schedule(static) num_threads(threads)
  for (int b = 0; b < blocks; ++b) {
    body(b * block, std::min(nodes, (b + 1) * block), thread_index());
  }
}

}  // namespace

template <class T>
struct RoutedNetwork<T>::ThreadMemory {
  Buffer<T> column;     // [data or output columns, lanes] of a node
  Buffer<T> hidden[2];  // [mlp_width, lanes]
  Buffer<T> mixed;      // [heads, width, lanes], what weighted heads deliver
  std::vector<const T*> sources;
};

template <class T>
struct RoutedNetwork<T>::Workspace {
  Buffer<T> state, next;  // [nodes, width, lanes]
  std::vector<ThreadMemory> threads;
};

template <class T>
typename RoutedNetwork<T>::Workspace RoutedNetwork<T>::make_workspace(int lanes,
                                                                      int threads) const {
  const int64_t row = int64_t{lanes} * spec_.width;
  Workspace work{Buffer<T>(spec_.nodes() * row), Buffer<T>(spec_.nodes() * row), {}};
  work.threads.resize(threads);
  for (ThreadMemory& memory : work.threads) {
    memory.column.resize(int64_t{lanes} * std::max(spec_.data_columns, spec_.output_columns));
    for (Buffer<T>& hidden : memory.hidden) hidden.resize(int64_t{lanes} * spec_.mlp_width);
    if (spec_.route_places > 1) memory.mixed.resize(spec_.heads * row);
    memory.sources.resize(spec_.heads + 1);
  }
  return work;
}

template <class T>
template <int lanes>
void RoutedNetwork<T>::encode(Given given, int samples, int first, int last, ThreadMemory& memory,
                              T* state) const {
  const int64_t columns = spec_.data_columns, width = spec_.width;
  const int64_t per_sample = spec_.real_nodes * columns;
  T* const data = memory.column.data();
  std::fill_n(data, columns * lanes, T{0});  // also lanes without a sample
  for (int i = first; i < last; ++i) {
    for (int64_t c = 0; c < columns; ++c) {
      for (int s = 0; s < samples; ++s) {
        data[c * lanes + s] =
            i < spec_.real_nodes ? given.inputs[s * per_sample + i * columns + c] : T{0};
      }
    }
    T* x = state + i * width * lanes;
    const T* sources[] = {data};
    apply<lanes, false>(encoder_, sources, x);
    const auto add_position = [&] {
      for (int64_t c = 0; c < width; ++c) {
        const T constant = positions_[i * width + c];
        for (int s = 0; s < lanes; ++s) x[c * lanes + s] += constant;
      }
    };
    if (spec_.positions_in_input) add_position();
    for (int s = 0; !tokens_.empty() && i < spec_.real_nodes && s < samples; ++s) {
      const int32_t token = given.tokens[int64_t{1} * s * spec_.real_nodes + i];
      if (token < 0) continue;
      for (int64_t c = 0; c < width; ++c) {
        const T of_token = tokens_[token * width + c];
        x[c * lanes + s] = spec_.tokens_and_values ? x[c * lanes + s] + of_token : of_token;
      }
    }
    if (spec_.positions_added) add_position();
  }
}

template <class T>
template <int lanes>
void RoutedNetwork<T>::run_layer(const Layer& layer, const T* state, int first, int last,
                                 ThreadMemory& memory, T* next) const {
  const int64_t row = int64_t{lanes} * spec_.width;
  const T** const sources = memory.sources.data();
  for (int64_t i = first; i < last; ++i) {
    sources[0] = state + i * row;
    for (const Head& head : layer.heads) {
      if (head.node[i] >= 0) {
        sources[head.source] = state + head.node[i] * row;
        continue;
      }
      T* sum = memory.mixed.data() + (head.source - 1) * row;
      sources[head.source] = sum;
      for (const int32_t c : head.columns) std::fill_n(sum + int64_t{lanes} * c, lanes, T{0});
      for (int64_t k = head.begin[i]; k < head.begin[i + 1]; ++k) {
        const auto& [node, weight] = head.reads[k];
        for (const int32_t c : head.columns) {
          const T* x = state + node * row + int64_t{lanes} * c;
          for (int s = 0; s < lanes; ++s) sum[int64_t{lanes} * c + s] += weight * x[s];
        }
      }
    }
    apply<lanes, true>(layer.maps[0], sources, memory.hidden[0].data());
    for (size_t m = 1; m < layer.maps.size(); ++m) {
      const T* from[] = {memory.hidden[(m - 1) % 2].data()};
      if (m + 1 < layer.maps.size()) {
        apply<lanes, true>(layer.maps[m], from, memory.hidden[m % 2].data());
      } else {
        apply<lanes, false>(layer.maps[m], from, next + i * row);
      }
    }
  }
}

template <class T>
template <int lanes>
void RoutedNetwork<T>::decode(const T* state, int samples, int first, int last,
                              ThreadMemory& memory, T* outputs) const {
  const int64_t columns = spec_.output_columns, per_sample = spec_.real_nodes * columns;
  for (int64_t i = first; i < std::min(last, spec_.real_nodes); ++i) {
    const T* sources[] = {state + i * spec_.width * lanes};
    apply<lanes, false>(decoder_, sources, memory.column.data());
    for (int s = 0; s < samples; ++s) {
      for (int64_t c = 0; c < columns; ++c) {
        outputs[s * per_sample + i * columns + c] = memory.column[c * lanes + s];
      }
    }
  }
}

template <class T>
template <int lanes>
void RoutedNetwork<T>::run_tile(Given given, int samples, T* outputs, Workspace& work) const {
  const int nodes = spec_.nodes();
  const auto threads = static_cast<int>(work.threads.size());
  for_nodes(nodes, threads, [&](int first, int last, int thread) {
    encode<lanes>(given, samples, first, last, work.threads[thread], work.state.data());
  });
  for (const Layer& layer : layers_) {
    for_nodes(nodes, threads, [&](int first, int last, int thread) {
      run_layer<lanes>(layer, work.state.data(), first, last, work.threads[thread],
                       work.next.data());
    });
    std::swap(work.state, work.next);
  }
  for_nodes(nodes, threads, [&](int first, int last, int thread) {
    decode<lanes>(work.state.data(), samples, first, last, work.threads[thread], outputs);
  });
}

template <class T>
template <int lanes>
void RoutedNetwork<T>::run(Given given, int64_t samples, T* outputs, int threads) const {
  const int64_t in = int64_t{1} * spec_.real_nodes * spec_.data_columns;
  const int64_t out = int64_t{1} * spec_.real_nodes * spec_.output_columns;
  const int64_t tiles = (samples + lanes - 1) / lanes;
  // A tile beyond any cache is not worth having once per thread.
  constexpr int64_t large = int64_t{4} << 20;
  const int64_t tile_bytes = int64_t{lanes} * spec_.nodes() * spec_.width * int64_t{sizeof(T)};
  const bool share_nodes = tiles < threads || tile_bytes > large;
  std::vector<Workspace> work;  // all memory is taken before threads start, where it may fail
  const int workspaces = share_nodes ? 1 : threads;
  work.reserve(workspaces);
  for (int k = 0; k < workspaces; ++k) {
    work.push_back(make_workspace(lanes, share_nodes ? threads : 1));
  }
  const auto run_one = [&](int64_t tile, Workspace& workspace) {
    const int64_t first = tile * lanes;
    const int32_t* tokens =
        given.tokens == nullptr ? nullptr : given.tokens + first * spec_.real_nodes;
    run_tile<lanes>({given.inputs + first * in, tokens},
                    static_cast<int>(std::min<int64_t>(lanes, samples - first)),
                    outputs + first * out, workspace);
  };
  if (share_nodes) {
    for (int64_t t = 0; t < tiles; ++t) {
      Watch::look();
      run_one(t, work[0]);
    }
    return;
  }
  parallel_for(tiles, threads, [&](int64_t t) { run_one(t, work[thread_index()]); });
}

template <class T>
void RoutedNetwork<T>::forward(const T* inputs, int64_t samples, T* outputs, int threads,
                               const int32_t* tokens) const {
  const Given given{inputs, tokens};
  if (samples == 1) {
    run<1>(given, samples, outputs, threads);
  } else if (samples <= 8) {
    run<4>(given, samples, outputs, threads);
  } else {
    run<16>(given, samples, outputs, threads);
  }
}

template <class T>
std::vector<T> RoutedNetwork<T>::states(const T* input, const int32_t* tokens) const {
  const int nodes = spec_.nodes();
  const int64_t size = int64_t{1} * nodes * spec_.width;
  Workspace work = make_workspace(1, 1);
  std::vector<T> all((layers_.size() + 1) * size);
  encode<1>({input, tokens}, 1, 0, nodes, work.threads[0], all.data());
  for (size_t l = 0; l < layers_.size(); ++l) {
    T* const state = all.data() + static_cast<int64_t>(l) * size;
    run_layer<1>(layers_[l], state, 0, nodes, work.threads[0], state + size);
  }
  return all;
}

template std::vector<float> RoutedNetwork<float>::states(const float*, const int32_t*) const;
template std::vector<double> RoutedNetwork<double>::states(const double*, const int32_t*) const;
template void RoutedNetwork<float>::forward(const float*, int64_t, float*, int,
                                            const int32_t*) const;
template void RoutedNetwork<double>::forward(const double*, int64_t, double*, int,
                                             const int32_t*) const;

}  // namespace posattn
