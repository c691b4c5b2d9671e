// What may track the generalisation gap: numbers of a trained run beside its gap, and how well each
// orders runs as their gaps do.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "posattn/bounds/kendall.h"
#include "posattn/bounds/measured_gap.h"
#include "posattn/model/model_file.h"
#include "posattn/training/run_config.h"

namespace posattn::bounds {

struct GapMeasure {
  std::string name;   // "path_norm"
  std::string words;  // of a table
};
const std::vector<GapMeasure>& gap_measures();

struct GapRequest {
  std::string name;  // of the run
  RunConfig run;
  double clip = 1, delta = 0.05;
  int64_t fresh_samples = 20'000;
  int threads = 1;
};

struct GapRun {
  std::string name, architecture;
  int64_t samples = 0;  // m
  MeasuredGap measured = {};
  std::vector<double> values = {};  // of gap_measures(), those of products as logarithms
};

// Throws as bound_report does.
GapRun gap_run(const Model& model, const GapRequest& request);

// ||weights - initial weights||, over what is trained.
double distance_from_start(const Model& model, const RunConfig& run);

// Which pairs of runs are compared.
enum class Compared { all, same_architecture, same_architecture_and_samples };
// Of measure number `measure` with the gap.
RankCorrelation gap_correlation(const std::vector<GapRun>& runs, size_t measure, Compared compared);

}  // namespace posattn::bounds
