// The published results that come with the program.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "posattn/experiments/curves.h"

namespace posattn {

// A published point (experiments/published.csv, embedded): summarised from the result files that
// the paper's authors released. `correction` says what was changed where those are known to be
// wrong, or is empty.
struct PublishedPoint {
  PointSummary point;
  std::string correction;
};
const std::vector<PublishedPoint>& published_points();
std::vector<PublishedPoint> published_points(const std::string& experiment);
// The points to compare its results with. Losses of the paper's experiments are what was published:
// none for another metric or for an experiment of the user's own.
std::vector<PublishedPoint> published_points(const Experiment& experiment);

// The columns of to_csv and `correction`; all numbers finite. Throws Error(data) that starts with
// "name:line".
std::vector<PublishedPoint> published_from_csv(std::string_view csv, const std::string& name);

}  // namespace posattn
