// The norms of a collapsed network that the bounds read, each as its natural logarithm.
#pragma once

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>

#include "posattn/bounds/collapsed_network.h"

namespace posattn::bounds {

struct LayerNorms {
  int in = 0, out = 0;
  std::vector<double> maps;  // ln ||T_0||, .., ln ||T_H||
  double offset = 0;         // ln ||t||
  double rows = 0;           // ln ||[T_0 .. T_H t]||_{2,1}
  double joined = 0;         // ln ||[T_0 .. T_H t]||
  // One number per head, of standard networks only.
  std::vector<double> scores;            // ln ||M_h||
  std::vector<double> score_offsets;     // ln ||mu_h||
  std::vector<double> scores_frobenius;  // ln ||[M_h; mu_h']||_F
  std::vector<double> scores_joined;     // ln ||[M_h; mu_h']||

  int heads() const { return static_cast<int>(maps.size()) - 1; }
};

struct NetworkNorms {
  bool positional = true;
  int nodes = 0;  // N, with the scratch nodes
  std::vector<LayerNorms> layers;
  double output = 0;         // ln ||w||
  double output_joined = 0;  // ln ||(w, c)||

  int heads() const { return layers.front().heads(); }
  int depth() const { return static_cast<int>(layers.size()); }
};

NetworkNorms norms_of(const CollapsedNetwork& network);

// The norms after W_Q, W_K and their biases were multiplied by e^log_factor: scores grow by its
// square. Positional networks stay as they are.
NetworkNorms with_scaled_queries_and_keys(NetworkNorms norms, double log_factor);

// How far states reach and how errors travel (lemma 7 of docs/bounds.md), over samples and nodes at
// once; all as natural logarithms.
//
//   B_0 = R (standard: sqrt(R^2 + 1)),  B_l = (sum_h ||T_h||) B_{l-1} + ||t||
//   Lambda_l = sum_h ||T_h||                                              positional
//            = ||T_0|| + sum_h ||T_h|| (1 + 2 ||M_h|| B^2 + ||mu_h|| B)   standard, B = B_{l-1}
//   P_L = ||w||,  P_l = P_{l+1} Lambda_{l+1}
struct Propagation {
  std::vector<double> state;          // ln B_0 .. ln B_L: lengths of states
  std::vector<double> amplification;  // ln Lambda_1 .. ln Lambda_L: of an error by a layer
  std::vector<double> sensitivity;    // ln P_1 .. ln P_L: of the output to an error after layer l

  // ln sqrt((H+1) B_l^2 + 1): the length of what the maps of layer l (from 0) are applied to.
  double joined_state(int layer, int heads) const;
  // ln B_l sqrt(B_l^2 + 1): of what the score matrices of layer l are applied to.
  double score_state(int layer) const;
};

Propagation propagate(const NetworkNorms& norms, double range);

// The union over norms (lemma 9 of docs/bounds.md). A bound is proved for classes of networks whose
// norms are at most given numbers; a trained network's norms are not given in advance. So each norm
// that a bound reads is rounded up to a power of 1.02, and delta is shared among all powers:
// exponent j has the share (2/3) / ((|j|+1)(|j|+2)), which adds up to 1 over all integers.
inline constexpr double grid_base = 1.02;

// The least ln(1.02^j) that is not below `log_norm` (1e-6 at least).
double rounded_up(double log_norm);
// ln(1 / share) of a norm on the grid.
double grid_cost(double rounded_log_norm);

enum class BoundKind { norms, count };  // which norms are read, lemmas 8 and 10

struct RoundedNorms {
  NetworkNorms norms;  // those that are read: on the grid
  double cost = 0;     // g: sum of ln(1 / share), in nats
};
RoundedNorms on_grid(NetworkNorms norms, BoundKind kind);

// The sizes and probabilities that a bound is computed for.

struct BoundSetting {
  double samples = 30000;  // m, independent; some bounds need more than integers hold
  double range = 2;        // R: |x_i| <= R, known and not estimated
  double clip = 1;         // b: the loss is the mean over nodes of min((f_i - y_i)^2, b^2)
  double delta = 0.05;     // the statement holds with probability 1 - delta
};

// Throws Error(usage), naming the flag of posattn bound.
void check(const BoundSetting& setting);

// Numbers as their natural logarithms: bounds of deep networks leave the range of double, their
// logarithms do not.

inline constexpr double log_zero = -std::numeric_limits<double>::infinity();

// ln(sum of e^x)
inline double log_sum(std::span<const double> logs) {
  double greatest = log_zero;
  for (const double x : logs) greatest = std::max(greatest, x);
  if (greatest == log_zero) return log_zero;
  double sum = 0;
  for (const double x : logs) sum += std::exp(x - greatest);
  return greatest + std::log(sum);
}
inline double log_sum(std::initializer_list<double> logs) {
  return log_sum(std::span<const double>(logs.begin(), logs.size()));
}

inline double to_log10(double log) { return log / std::log(10.0); }

}  // namespace posattn::bounds
