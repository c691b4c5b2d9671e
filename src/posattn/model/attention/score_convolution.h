// DAPE V2 (arXiv 2410.04798): scores of a key meet those of its neighbours, of all heads at once.
//   Z = [S; B],  U = leaky(conv(Z, W0) + b0),  S' = S + B + conv(U, W1) + b1
// over the keys of each row, with S made of the data, B the term of positions (if there is one), 32
// channels in U, windows of w keys, zeros beyond the first and the last key, and leaky(u) =
// max(u, u / 100). Where causal, Z is zero at later keys, so that row i sees keys up to i alone.
// Scratch nodes stay outside: their rows and columns of S' are those of S + B.
//   dU = conv^T(dS', W1) leaky'(U),  dZ = conv^T(dU, W0),  dS = dS' + dZ_S,  dB = dS' + dZ_B
// Window 1 is DAPE (arXiv 2405.14722): an MLP of one pair's scores.
#pragma once

#include <algorithm>
#include <vector>

#include "posattn/model/attention/rows.h"

namespace posattn {

inline constexpr int score_convolution_hidden = 32;  // channels of U
int score_channels(const ModelSpec& layer);  // heads, twice where there is a term of positions
std::vector<TensorInfo> score_convolution_tensors(const ModelSpec& layer);

// Of one layer, for the parameters and the length that its context has.
template <class T>
class ScoreConvolution {
 public:
  ScoreConvolution(const AttentionBlock& block, const NodeContext<T>& nodes);

  // What forward leaves of a sample for backward: S' first.
  int64_t kept_size() const { return squares() + places_ * channels_ + pixels() * hidden; }

  struct Memory {
    std::vector<T> data, products, hidden, gradients, transposed;
  };
  void forward(const ScoreParts<T>& parts, T* kept, Memory& memory) const;
  // The parts of which a weighting makes attention: S' in place of both terms.
  ScoreParts<T> mixed(const ScoreParts<T>& parts, const T* kept) const;

  // Of some samples: begin, then each sample, then end, which adds to sums, laid out as the
  // parameters.
  // dscores, of S', becomes that of the term of positions.
  void begin_backward(Memory& memory) const;
  void backward(const ScoreParts<T>& parts, const T* kept, T* dscores, T* dquery_key,
                Memory& memory) const;
  void end_backward(const Memory& memory, T* sums) const;

 private:
  static constexpr int64_t hidden = score_convolution_hidden;
  static constexpr T slope = T(0.01);

  int64_t squares() const { return heads_ * n_ * n_; }
  // The keys of row i that U is needed of, and how many of them have a score.
  int64_t width(int64_t i) const { return causal_ ? std::min(i + 1 + margin_, real_) : real_; }
  int64_t scored(int64_t i) const { return causal_ ? i + 1 : real_; }
  // Rows of Z lie one after the other, each with a margin at both ends. A place of U is that of the
  // first key of its window; those between two rows mean nothing and have no gradient.
  int64_t pixels() const { return places_ - 2 * margin_; }

  const ScoreConvolutionTerm& term_;
  const ParameterLayout& layout_;
  int64_t heads_, n_, real_, channels_, window_, margin_, places_ = 0;
  bool causal_;
  std::vector<int64_t> start_;  // of each row
  // W0 as [window, channels, hidden] and [hidden, window, channels], W1 as [window, heads, hidden]
  // and [hidden, window, heads].
  std::vector<T> first_, first_transposed_, last_, last_transposed_;
  const T *first_bias_, *last_bias_;
};

}  // namespace posattn
