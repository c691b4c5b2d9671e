// Every metric that can be measured of a task, summed over the sets of one test.
#pragma once

#include <string>
#include <vector>

#include "posattn/evaluation/measurement.h"
#include "posattn/evaluation/metrics/metric.h"

namespace posattn {

class TestSums {
 public:
  explicit TestSums(Loss loss);
  void add(const Predictions& predictions);
  TestSums& operator+=(const TestSums& other);  // of the same loss
  std::vector<Measurement> rows(const std::string& axis, double x) const;

 private:
  std::vector<const Metric*> metrics_;
  std::vector<MetricSum> sums_;  // of each
};

}  // namespace posattn
