// From covering numbers to the gap (lemma 2 of docs/bounds.md): the Rademacher average of the
// clipped losses is at most, for every K >= 1,
//   eps_K + sum over k = 1..K of (eps_k + eps_{k-1}) sqrt(2 (H_k + H_{k-1}) / m)
// with eps_k = (b^2/2) 2^-k, H_k the entropy at eps_k and H_0 = 0.
#pragma once

#include <cstdint>
#include <functional>

namespace posattn::bounds {

struct Chain {
  double log_average = 0;  // ln of the bound on the Rademacher average, the least over K
  int links = 0;           // that K
};

// `log_entropy`: ln H(eps) for ln eps, of the losses.
Chain chain(const std::function<double(double)>& log_entropy, double samples, double clip);

}  // namespace posattn::bounds
