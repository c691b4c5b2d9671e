// Intermediate labels (Engelmayer et al., "Parallel Algorithms Align with Neural Execution", arXiv
// 2307.04049): after each layer a model also learns what a parallel program holds then.
//
// With R rounds and L layers the state behind layer l = 1..L has the words after round ceil(l R /
// L) as labels: the program's own words that its later rounds or its output still need, on each
// real node. A linear map of each layer's state reads them. The maps are trained and saved in
// checkpoints, but they are no part of the model.
#pragma once

#include <vector>

#include "posattn/model/spec/parameters.h"
#include "posattn/programs/form/static_program.h"
#include "posattn/tasks/dataset.h"
#include "posattn/training/run_config.h"

namespace posattn {

class Hints {
 public:
  // Those of settings that have some. Throws Error(configuration) for a program that does not fit
  // the task, and for another text than that of hints-hash.
  explicit Hints(const RunConfig& config);

  const std::vector<int>& columns() const { return columns_; }  // ModelSpec::hint_columns

  void add_labels(Dataset& set, int threads) const;  // set.hints

  // The mean squared error of the maps' readings over all labels of a set. `spec` and `parameters`
  // are those of training.
  double error(const ModelSpec& spec, const Parameters<float>& parameters,
               const Dataset& set) const;

 private:
  struct Labels {  // of the state behind a layer
    int64_t round = 0;
    std::vector<int> words;
  };
  StaticProgram program_;
  std::vector<Labels> layers_;
  std::vector<int> columns_;
};

}  // namespace posattn
