// What `posattn compare` prints.
#pragma once

#include <string>
#include <vector>

#include "posattn/experiments/comparison.h"

namespace posattn {

struct ComparedExperiment {
  Experiment experiment;
  std::string results;              // our folder
  bool published = true;            // compared with the published results, not with a folder
  std::vector<Curve> curves;        // ours, of the splits to show
  Comparison comparison;            // of these
  std::vector<PairedPoint> paired;  // the experiment's first two lines
};

std::string comparison_text(const ComparedExperiment& compared);
std::string comparison_json(const ComparedExperiment& compared);

}  // namespace posattn
