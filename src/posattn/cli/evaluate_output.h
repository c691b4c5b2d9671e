// What `posattn evaluate` prints.
#pragma once

#include "posattn/evaluation/evaluate.h"
#include "posattn/model/file/model_file.h"

namespace posattn {

struct EvaluatedModel {
  std::string path;
  std::string program;    // that it was compared with, where it has no task
  bool has_scale = true;  // false: a program of whole numbers, which no scale c changes
  ModelSpec spec;
  ModelOrigin origin;
  Evaluation evaluation;
};

// Models that were tested at the same values of an axis.
struct AxisResults {
  EvaluationAxis axis;
  std::vector<EvaluatedModel> models;
};

// The same models along one axis or several.
//
// Models that differ in nothing but their weights, such as the seeds of a fleet, are summarised
// together; where that leaves groups of one task, architecture and length, each says what differs.
std::string evaluation_text(const std::vector<AxisResults>& results, bool per_node);
// unfinished: folders of runs that have no model yet.
std::string evaluation_json(const std::vector<AxisResults>& results,
                            const std::vector<std::string>& unfinished);

}  // namespace posattn
