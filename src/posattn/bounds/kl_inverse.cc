#include "posattn/bounds/kl_inverse.h"

#include <cmath>

namespace posattn::bounds {

double binary_kl(double q, double p) {
  const double happens = q > 0 ? q * std::log(q / p) : 0;
  const double not_so = q < 1 ? (1 - q) * (std::log1p(-q) - std::log1p(-p)) : 0;
  return happens + not_so;
}

double kl_inverse(double q, double bound) {
  // kl(q || p) grows in p >= q; `high` always lies above the solution (or is 1).
  double low = q, high = 1;
  while (true) {
    const double middle = low + (high - low) / 2;
    if (!(low < middle && middle < high)) return high;  // no number between them
    (binary_kl(q, middle) <= bound ? low : high) = middle;
  }
}

}  // namespace posattn::bounds
