#include "posattn/bounds/certificate/data_mixing.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "posattn/kernels/cpu/blas.h"

namespace posattn::bounds {
namespace {

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
