// The steps of a run that several ranks train together. Every rank has the same data and weights
// and takes its part of each batch; what all of them go on with is
//   gradient = (sum_r c_r gradient_r) / c,    loss = (sum_r c_r loss_r) / c,
// c_r of the c terms of the batch's mean being rank r's: samples of a squared error, nodes that
// count of a cross-entropy. Sums have the order of the ranks (mpi/ranks.h), so that all ranks have
// the same bits, the same number of ranks always has, and another number differs by rounding.
//
// Nothing of this overlaps with the backward pass: the engines add the gradients of a batch's
// groups when its last sample is done, so there is nothing to send before.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "posattn/model/network.h"
#include "posattn/model/parameters.h"
#include "posattn/mpi/ranks.h"

namespace posattn {

// The samples begin .. end - 1 that part `number` of `of` takes; parts differ by one sample at
// most, and may be empty.
struct Part {
  int64_t begin, end;
};
Part part_of(int64_t samples, int number, int of);
Batch part_of(const Batch& whole, int number, int of);

// The terms of the batch's mean loss.
int64_t terms_of(const ModelSpec& spec, const Batch& batch, std::span<const uint8_t> mask);

class DataParallelSteps {
 public:
  explicit DataParallelSteps(Ranks& ranks) : ranks_(ranks) {}

  int rank() const { return ranks_.rank(); }
  int size() const { return ranks_.size(); }
  // The one that measures and writes.
  bool is_first() const { return rank() == 0; }

  // Loss and gradient of `batch`, as Network::gradient has them, by all ranks together. Nothing
  // where any of them has `stop`: all stop in the same step.
  std::optional<double> gradient(Network& network, const Parameters<float>& parameters,
                                 const Batch& batch, std::span<const uint8_t> mask, bool stop,
                                 Parameters<float>& gradient);
  // The same of a gradient that this rank has found elsewhere, for `terms` terms: the mean is put
  // in its place. `values` is the gradient, and behind it extra_numbers that are this function's.
  static constexpr std::size_t extra_numbers = 4;
  std::optional<double> mean(std::span<float> values, double loss, int64_t terms, bool stop);
  // Takes part in a step of the others with nothing but `stop`.
  void withdraw(const ParameterLayout& layout);

  // Throws Error(failed) on all ranks where their weights are not the same.
  void check_equal(const Parameters<float>& parameters);

 private:
  Ranks& ranks_;
  std::vector<float> summed_;
};

}  // namespace posattn
