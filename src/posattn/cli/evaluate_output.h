// What `posattn evaluate` prints.
#pragma once

#include <string>
#include <vector>

#include "posattn/evaluation/evaluate.h"
#include "posattn/model/model_file.h"

namespace posattn {

struct EvaluatedModel {
  std::string path;
  std::string program;  // that it was compared with, where it has no task
  ModelSpec spec;
  ModelOrigin origin;
  Evaluation evaluation;
};

// Every model was tested at the same values of the axis.
//
// Models that differ in nothing but their weights, such as the seeds of a fleet, are summarised
// together; where that leaves groups of one task, architecture and length, each says what differs.
std::string evaluation_text(const std::vector<EvaluatedModel>& models, const EvaluationAxis& axis,
                            bool per_node);
// unfinished: folders of runs that have no model yet.
std::string evaluation_json(const std::vector<EvaluatedModel>& models, const EvaluationAxis& axis,
                            const std::vector<std::string>& unfinished);

}  // namespace posattn
