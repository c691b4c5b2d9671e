#include "posattn/evaluation/test_sums.h"

namespace posattn {

TestSums::TestSums(Loss loss) : metrics_(metrics()) {
  std::erase_if(metrics_, [loss](const Metric* metric) {
    return metric->is_derived() || metric->of_answers || metric->loss != loss;
  });
  sums_.resize(metrics_.size());
}

void TestSums::add(const Predictions& predictions) {
  for (size_t i = 0; i < metrics_.size(); ++i) sums_[i] += metrics_[i]->measure(predictions);
}

TestSums& TestSums::operator+=(const TestSums& other) {
  for (size_t i = 0; i < sums_.size(); ++i) sums_[i] += other.sums_[i];
  return *this;
}

std::vector<Measurement> TestSums::rows(const std::string& axis, double x) const {
  std::vector<Measurement> rows;
  for (size_t i = 0; i < metrics_.size(); ++i) {
    rows.push_back({Split::test, axis, x, std::string(metrics_[i]->name), sums_[i].mean()});
  }
  return rows;
}

}  // namespace posattn
