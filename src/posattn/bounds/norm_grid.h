// The union over norms (lemma 9 of docs/bounds.md). A bound is proved for classes of networks whose
// norms are at most given numbers; a trained network's norms are not given in advance. So each norm
// that a bound reads is rounded up to a power of 1.02, and delta is shared among all powers:
// exponent j has the share (2/3) / ((|j|+1)(|j|+2)), which adds up to 1 over all integers.
#pragma once

#include "posattn/bounds/network_norms.h"

namespace posattn::bounds {

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

}  // namespace posattn::bounds
