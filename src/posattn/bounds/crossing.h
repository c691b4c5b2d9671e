// The paper's trade-off in numbers: a standard Transformer does k-hop induction with
// floor(log2 k) + 2 layers (Sanford, Hsu and Telgarsky, arXiv 2402.09268), a positional one needs
// more, but pays no query-key norm in any of them. At which query-key norm do the bounds by norms
// of the two cross? On the numeric architecture, which the bounds cover, with the norms of its
// initial values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "posattn/bounds/network_norms.h"

namespace posattn::bounds {

struct CrossingRequest {
  std::vector<int> hops = {1, 4, 16};               // k
  std::vector<int> positional_depths = {4, 8, 16};  // L_pos
  int length = 8, width = 64, heads = 2;
  uint64_t seed = 0;  // of the initial values
  BoundSetting setting = {};
};

struct CrossingPoint {
  int hops = 0, standard_depth = 0, positional_depth = 0;
  // ln of the largest ||W_Q' W_K|| / sqrt(d_k) at which (b) equals (a); absent where (b) is larger
  // without any, as for L_pos below L_std.
  std::optional<double> log_norm;
};

// (b) at a query-key norm, both as natural logarithms.
struct StandardCurve {
  int hops = 0, depth = 0;
  std::vector<double> log_norms, log_bounds;
};
struct PositionalLevel {
  int depth = 0;
  double log_bound = 0;
};

struct Crossing {
  double log_initial_norm = 0;  // of the initial values, the largest of all layers and heads
  std::vector<PositionalLevel> positional;
  std::vector<StandardCurve> standard;
  std::vector<CrossingPoint> points;  // by k, then L_pos
};

int standard_depth_for(int hops);  // floor(log2 k) + 2

// Throws Error(usage) for k below 1 and depths outside 1 to 64.
Crossing find_crossing(const CrossingRequest& request);

// The document of `posattn bound --crossing LIST --json`; bound_report.cc writes it.
std::string to_json(const Crossing& crossing);

}  // namespace posattn::bounds
