// What `posattn compare` prints.
#pragma once

#include "posattn/cli/terminal.h"
#include "posattn/experiments/comparison.h"
#include "posattn/experiments/curves.h"

namespace posattn {

struct ComparedExperiment {
  Experiment experiment;
  int64_t whole_epochs = 0;            // of the experiment without --quick and --epochs
  std::string results;                 // our folder
  bool published = true;               // compared with the published results, not with a folder
  std::vector<Curve> curves;           // ours, of the splits to show
  std::vector<PublishedPoint> theirs;  // what they are compared with
  Comparison comparison;               // of both
  std::vector<PairedPoint> paired;     // the experiment's first two lines
  std::vector<MissingRuns> missing;    // of ours
  std::string reproduce;               // the command that trains these
  std::string other_precision;         // the command that compares those in tf32 or fp32; or ""
};

constexpr int page_columns = 100;

// {"runs": ..., "min": ..., "q10": ..., "median": ..., "q90": ..., "max": ...}
Json summary_json(const PointSummary& point);

std::string comparison_text(const ComparedExperiment& compared);
std::string comparison_json(const ComparedExperiment& compared);

// The end of the text: what there is nothing to show of, and the commands that change that.
std::string missing_part(const ComparedExperiment& compared);

}  // namespace posattn
