#include "posattn/bounds/certificate/collapsed_engine.h"

#include <algorithm>
#include <cmath>

#include "posattn/kernels/cpu/blas.h"

namespace posattn::bounds {
namespace {

// Adds the derivative by scores, of which that by attention is known.
void add_score_gradient(const float* attention, const float* by_attention, int nodes,
                        float* by_scores) {
  for (int i = 0; i < nodes; ++i) {
    const int row = i * nodes;
    float mean = 0;
    for (int j = 0; j < nodes; ++j) mean += attention[row + j] * by_attention[row + j];
    for (int j = 0; j < nodes; ++j) {
      by_scores[row + j] += attention[row + j] * (by_attention[row + j] - mean);
    }
  }
}

float dot_product(const float* a, const float* b, int size) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int k = 0; k < size; ++k) sum += a[k] * b[k];
  return sum;
}

void add_scaled(float* to, const float* from, float factor, int size) {
#pragma omp simd
  for (int k = 0; k < size; ++k) to[k] += factor * from[k];
}

void softmax(float* row, int size) {
  const float largest = *std::max_element(row, row + size);
  float sum = 0;
  for (int j = 0; j < size; ++j) sum += row[j] = std::exp(row[j] - largest);
  for (int j = 0; j < size; ++j) row[j] /= sum;
}

}  // namespace

CollapsedEngine::CollapsedEngine(const Coordinates& coordinates, int samples)
    : coordinates_(coordinates) {
  const int nodes = coordinates.nodes(), heads = coordinates.heads();
  const int64_t rows = static_cast<int64_t>(nodes) * samples;
  int64_t widest = 1;
  for (const CoordinateLayer& layer : coordinates.layers()) {
    LayerMemory memory;
    for (int h = 0; h < heads; ++h) {
      memory.mixed.emplace_back(rows * layer.in);
      if (coordinates.positional()) {
        memory.attention.emplace_back(static_cast<int64_t>(nodes) * nodes);
      } else {
        memory.from_data.emplace_back(MixingShape{nodes, samples, layer.in});
      }
    }
    memory_.push_back(std::move(memory));
    states_.emplace_back(rows * layer.in);
    widest = std::max<int64_t>({widest, layer.in, layer.out});
  }
  states_.emplace_back(rows * coordinates.layers().back().out);
  outputs_.resize(static_cast<int64_t>(coordinates.real_nodes()) * samples);
  slopes_.resize(outputs_.size());
  by_state_.resize(rows * widest);
  by_previous_.resize(rows * widest);
  by_mixed_.resize(rows * widest);
}

double CollapsedEngine::loss(const float* weights, const LabelledBatch& batch,
                             const OutputLoss& loss) {
  run_forward(weights, batch);
  return measure(batch, loss, false);
}

double CollapsedEngine::add_gradient(const float* weights, const LabelledBatch& batch,
                                     const OutputLoss& loss, float* gradient) {
  run_forward(weights, batch);
  const double value = measure(batch, loss, true);
  const int width = coordinates_.layers().back().out;
  const int64_t read = static_cast<int64_t>(coordinates_.real_nodes()) * batch.samples;
  const int64_t rows = static_cast<int64_t>(coordinates_.nodes()) * batch.samples;
  gemm(true, false, 1, width, read, 1, slopes_.data(), 1, states_.back().data(), width, 1,
       gradient + coordinates_.output(), width);
  if (coordinates_.output_offset() >= 0) {
    float sum = 0;
    for (int64_t r = 0; r < read; ++r) sum += slopes_[r];
    gradient[coordinates_.output_offset()] += sum;
  }
  std::fill_n(by_state_.data(), rows * width, 0.0F);
  gemm(false, false, read, width, 1, 1, slopes_.data(), 1, weights + coordinates_.output(), width,
       0, by_state_.data(), width);
  for (size_t l = memory_.size(); l-- > 0;) {
    back_layer(l, weights, batch.samples, gradient);
    std::swap(by_state_, by_previous_);
  }
  return value;
}

void CollapsedEngine::run_forward(const float* weights, const LabelledBatch& batch) {
  const int real_nodes = coordinates_.real_nodes(), samples = batch.samples,
            in = coordinates_.layers().front().in;
  float* first = states_.front().data();
  std::fill_n(first, static_cast<int64_t>(coordinates_.nodes()) * samples * in, 0.0F);
  for (int i = 0; i < coordinates_.nodes(); ++i) {
    for (int b = 0; b < samples; ++b) {
      float* state = first + (static_cast<int64_t>(i) * samples + b) * in;
      if (i < real_nodes) state[0] = batch.inputs[static_cast<int64_t>(b) * real_nodes + i];
      if (!coordinates_.positional()) state[1 + i] = 1;
    }
  }
  for (size_t l = 0; l < memory_.size(); ++l) run_layer(l, weights, samples);
  const int64_t read = static_cast<int64_t>(real_nodes) * samples;
  const int width = coordinates_.layers().back().out;
  std::fill_n(outputs_.data(), read,
              coordinates_.output_offset() >= 0 ? weights[coordinates_.output_offset()] : 0.0F);
  gemm(false, false, read, 1, width, 1, states_.back().data(), width,
       weights + coordinates_.output(), 1, 1, outputs_.data(), 1);
}

void CollapsedEngine::run_layer(size_t index, const float* weights, int samples) {
  const CoordinateLayer& layer = coordinates_.layers()[index];
  LayerMemory& memory = memory_[index];
  const int nodes = coordinates_.nodes();
  const int64_t rows = static_cast<int64_t>(nodes) * samples;
  const int64_t columns = static_cast<int64_t>(samples) * layer.in;
  const float* state = states_[index].data();
  float* next = states_[index + 1].data();
  for (int64_t r = 0; r < rows; ++r) {
    if (layer.offset >= 0) {
      std::copy_n(weights + layer.offset, layer.out, next + r * layer.out);
    } else {
      std::fill_n(next + r * layer.out, layer.out, 0.0F);
    }
  }
  const auto add_map = [&](const float* input, int64_t map) {
    gemm(false, true, rows, layer.out, layer.in, 1, input, layer.in, weights + map, layer.in, 1,
         next, layer.out);
  };
  add_map(state, layer.maps[0]);
  for (int h = 0; h < coordinates_.heads(); ++h) {
    float* mixed = memory.mixed[h].data();
    if (coordinates_.positional()) {
      float* attention = memory.attention[h].data();
      std::copy_n(weights + layer.scores[h], nodes * nodes, attention);
      for (int i = 0; i < nodes; ++i) softmax(attention + i * nodes, nodes);
      gemm(false, false, nodes, columns, nodes, 1, attention, nodes, state, columns, 0, mixed,
           columns);
    } else {
      memory.from_data[h].forward({nodes, samples, layer.in}, state, weights + layer.scores[h],
                                  weights + layer.score_offsets[h], mixed);
    }
    add_map(mixed, layer.maps[h + 1]);
  }
#pragma omp simd
  for (int64_t k = 0; k < rows * layer.out; ++k) next[k] = next[k] > 0 ? next[k] : 0;
}

void CollapsedEngine::back_layer(size_t index, const float* weights, int samples, float* gradient) {
  const CoordinateLayer& layer = coordinates_.layers()[index];
  LayerMemory& memory = memory_[index];
  const int nodes = coordinates_.nodes();
  const int64_t rows = static_cast<int64_t>(nodes) * samples;
  const int64_t columns = static_cast<int64_t>(samples) * layer.in;
  const float *state = states_[index].data(), *after = states_[index + 1].data();
  float *by_sum = by_state_.data(), *by_previous = by_previous_.data();
#pragma omp simd
  for (int64_t k = 0; k < rows * layer.out; ++k) by_sum[k] = after[k] > 0 ? by_sum[k] : 0;
  if (layer.offset >= 0) {
    float* by_offset = gradient + layer.offset;
    for (int64_t r = 0; r < rows; ++r) {
#pragma omp simd
      for (int k = 0; k < layer.out; ++k) by_offset[k] += by_sum[r * layer.out + k];
    }
  }
  const auto back_map = [&](const float* input, int64_t map, float* by_input) {
    gemm(true, false, layer.out, layer.in, rows, 1, by_sum, layer.out, input, layer.in, 1,
         gradient + map, layer.in);
    gemm(false, false, rows, layer.in, layer.out, 1, by_sum, layer.out, weights + map, layer.in, 0,
         by_input, layer.in);
  };
  back_map(state, layer.maps[0], by_previous);
  std::vector<float> by_attention(static_cast<size_t>(nodes) * nodes);
  for (int h = 0; h < coordinates_.heads(); ++h) {
    float* by_mixed = by_mixed_.data();
    back_map(memory.mixed[h].data(), layer.maps[h + 1], by_mixed);
    if (coordinates_.positional()) {
      const float* attention = memory.attention[h].data();
      gemm(false, true, nodes, nodes, columns, 1, by_mixed, columns, state, columns, 0,
           by_attention.data(), nodes);
      add_score_gradient(attention, by_attention.data(), nodes, gradient + layer.scores[h]);
      gemm(true, false, nodes, columns, nodes, 1, attention, nodes, by_mixed, columns, 1,
           by_previous, columns);
    } else {
      memory.from_data[h].backward({nodes, samples, layer.in}, state, weights + layer.scores[h],
                                   weights + layer.score_offsets[h], by_mixed, by_previous,
                                   gradient + layer.scores[h], gradient + layer.score_offsets[h]);
    }
  }
}

double CollapsedEngine::measure(const LabelledBatch& batch, const OutputLoss& loss, bool slopes) {
  const int real_nodes = coordinates_.real_nodes();
  const double square = loss.clip * loss.clip;
  const double outputs = static_cast<double>(real_nodes) * batch.samples;
  constexpr double no_number = 1e20;  // beyond it, and for NaN: the whole loss and no slope
  double sum = 0;
  for (int i = 0; i < real_nodes; ++i) {
    for (int b = 0; b < batch.samples; ++b) {
      const int64_t k = static_cast<int64_t>(i) * batch.samples + b;
      const double error =
          double{outputs_[k]} - double{batch.targets[static_cast<int64_t>(b) * real_nodes + i]};
      const double u = error * error;
      sum += u < square ? u / square : 1;
      if (!slopes) continue;
      double slope = 0;
      if (loss.smooth && u < no_number) {
        slope = 2 * error * square / ((square + u) * (square + u));
      } else if (!loss.smooth && u < square) {
        slope = 2 * error / square;
      }
      slopes_[k] = static_cast<float>(slope / outputs);
    }
  }
  return sum / outputs;
}

DataMixing::DataMixing(const MixingShape& largest)
    : queries_(static_cast<size_t>(largest.nodes) * largest.samples * largest.features),
      by_queries_(queries_.size()),
      attention_(static_cast<size_t>(largest.nodes) * largest.nodes * largest.samples) {}

void DataMixing::forward(const MixingShape& shape, const float* states, const float* scores,
                         const float* score_offset, float* mixed) {
  const int nodes = shape.nodes, features = shape.features;
  const int64_t rows = static_cast<int64_t>(nodes) * shape.samples;
  const auto row = [&](int node, int sample) {
    return (static_cast<int64_t>(node) * shape.samples + sample) * features;
  };
  gemm(false, false, rows, features, features, 1, states, features, scores, features, 0,
       queries_.data(), features);
  std::fill_n(mixed, rows * features, 0.0F);
  for (int b = 0; b < shape.samples; ++b) {
    float* attention = attention_.data() + static_cast<int64_t>(b) * nodes * nodes;
    for (int j = 0; j < nodes; ++j) {
      const float* state = states + row(j, b);
      const float offset = dot_product(score_offset, state, features);
      for (int i = 0; i < nodes; ++i) {
        attention[i * nodes + j] =
            dot_product(queries_.data() + row(i, b), state, features) + offset;
      }
    }
    for (int i = 0; i < nodes; ++i) {
      softmax(attention + i * nodes, nodes);
      for (int j = 0; j < nodes; ++j) {
        add_scaled(mixed + row(i, b), states + row(j, b), attention[i * nodes + j], features);
      }
    }
  }
}

void DataMixing::backward(const MixingShape& shape, const float* states, const float* scores,
                          const float* score_offset, const float* by_mixed, float* by_states,
                          float* by_scores, float* by_score_offset) {
  const int nodes = shape.nodes, features = shape.features;
  const int64_t rows = static_cast<int64_t>(nodes) * shape.samples;
  const auto row = [&](int node, int sample) {
    return (static_cast<int64_t>(node) * shape.samples + sample) * features;
  };
  std::fill_n(by_queries_.data(), rows * features, 0.0F);
  std::vector<float> by_row(nodes);
  for (int b = 0; b < shape.samples; ++b) {
    const float* attention = attention_.data() + static_cast<int64_t>(b) * nodes * nodes;
    for (int i = 0; i < nodes; ++i) {
      const float* by_node = by_mixed + row(i, b);
      const float* weight = attention + i * nodes;
      float mean = 0;
      for (int j = 0; j < nodes; ++j) {
        by_row[j] = dot_product(by_node, states + row(j, b), features);
        mean += weight[j] * by_row[j];
        add_scaled(by_states + row(j, b), by_node, weight[j], features);
      }
      for (int j = 0; j < nodes; ++j) {
        const float by_score = weight[j] * (by_row[j] - mean);
        const float* state = states + row(j, b);
        add_scaled(by_queries_.data() + row(i, b), state, by_score, features);
        add_scaled(by_states + row(j, b), queries_.data() + row(i, b), by_score, features);
        add_scaled(by_states + row(j, b), score_offset, by_score, features);
        add_scaled(by_score_offset, state, by_score, features);
      }
    }
  }
  gemm(true, false, features, features, rows, 1, states, features, by_queries_.data(), features, 1,
       by_scores, features);
  gemm(false, true, rows, features, features, 1, by_queries_.data(), features, scores, features, 1,
       by_states, features);
}

}  // namespace posattn::bounds
