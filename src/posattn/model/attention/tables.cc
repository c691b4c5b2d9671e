#include "posattn/model/attention/tables.h"

#include <stdexcept>

namespace posattn {

// A table of pointers: rows are initialised in any order.
const PositionRow& row_of(ScoreBias kind) {
  switch (kind) {
    case ScoreBias::positions:
      return query_key_row;
    case ScoreBias::direct:
      return direct_row;
    case ScoreBias::distance:
      return distance_row;
    case ScoreBias::gray:
      return gray_row;
    case ScoreBias::log:
      return log_row;
    case ScoreBias::alibi:
      return alibi_row;
    case ScoreBias::kerple:
      return kerple_row;
    case ScoreBias::fire:
      return fire_row;
    case ScoreBias::buckets:
      return buckets_row;
    case ScoreBias::pairs:
      return pairs_row;
    case ScoreBias::window:
      return window_row;
    default:
      throw std::logic_error("scores of positions of no kind");
  }
}

const DataRow& row_of(Scores kind) {
  switch (kind) {
    case Scores::dot:
      return dot_row;
    case Scores::unit:
      return unit_row;
    case Scores::direction:
      return direction_row;
    case Scores::signs:
      return signs_row;
    case Scores::tropical:
      return tropical_row;
    case Scores::agreements:
      return agreements_row;
    default:
      throw std::logic_error("scores of no data");
  }
}

const ScaleRow* row_of(SourceScale kind) {
  static constexpr ScaleRow sample{.by_sample = true}, node{.by_sample = false};
  switch (kind) {
    case SourceScale::sample:
      return &sample;
    case SourceScale::node:
      return &node;
    case SourceScale::none:
      break;
  }
  return nullptr;
}

const WeightingRow& row_of(Weighting kind) {
  switch (kind) {
    case Weighting::softmax:
      return softmax_row;
    case Weighting::hard:
      return hard_row;
    case Weighting::relu:
      return relu_row;
    case Weighting::relu_rows:
      return relu_rows_row;
    case Weighting::sums:
      return sums_row;
    case Weighting::max_plus:
      return max_plus_row;
    case Weighting::kernel:
      return kernel_row;
    case Weighting::linear:
      return linear_row;
    case Weighting::low_rank:
      return low_rank_row;
    default:
      throw std::logic_error("a weighting without a row");
  }
}

}  // namespace posattn
