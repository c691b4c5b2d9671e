// A model and the program that it should compute: its outputs on given inputs, and whether they are
// right.
#pragma once

#include "posattn/model/file/model_file.h"
#include "posattn/model/network.h"
#include "posattn/model/routed/routed_network.h"
#include "posattn/programs/checking/verify.h"
#include "posattn/programs/form/definition.h"
#include "posattn/programs/lowering/network_plan.h"
#include "posattn/programs/messages/route_messages.h"
#include "posattn/tasks/task.h"

namespace posattn {

// What one input shows.
struct Judgement {
  bool wrong = false;
  bool by_task = false;                  // wrong against the task's answer
  std::vector<double> expected, bounds;  // the exact outputs, and how far rounding may lead
  std::vector<double> slack;             // see BoundedOutputs
};

class JudgedNetwork {
 public:
  // Throws as verify does.
  explicit JudgedNetwork(const VerifyRequest& request);

  const StaticProgram& program() const { return program_; }
  const RoutedProgram& routed() const { return routed_; }
  int input_count() const { return input_count_; }
  int output_count() const { return output_count_; }
  // Numbers that one run computes.
  int64_t work() const;

  // Outputs [samples, output_count] of inputs [samples, input_count].
  std::vector<double> forward(const std::vector<float>& inputs);

  // Reentrant. Throws Error(data) where the program has no value.
  Judgement judge(const float* input, const double* output) const;

  // What the squared error is taken against: the task's answer where there is one. In double the
  // program's, since the tasks' answers are fp32.
  std::vector<double> target(const float* input, const Judgement& judgement) const;

  // Whether the task asks for this output.
  bool counts(int output) const;

  std::string judged_by(const Judgement& judgement) const {
    return judgement.by_task ? "task " + program_.task : "the program";
  }

 private:
  bool has_answer() const { return task_ != nullptr || definition_ != nullptr; }
  std::vector<float> answer(const float* input) const;
  // Fills in how far each output may be off; whole numbers may not be off at all.
  void allow_errors(const std::vector<double>& input, Judgement& judgement) const;

  const VerifyRequest& request_;
  const StaticProgram& program_;
  int processors_, input_count_, output_count_;
  RoutedProgram routed_;
  NetworkPlan plan_;
  Network network_;
  std::optional<RoutedNetwork<double>> in_double_;
  const Task* task_ = nullptr;
  const Definition* definition_ = nullptr;
};

// How the model differs from what compile() writes for the program, in a few words, or "". The
// sizes, and whether attention is dense and how sharp, are the model's own. Throws Error(data)
// where compile() refuses the program, or would write another training range into the file: that
// range decides what is tested.
std::string difference_from_compiled(const Model& model, const RoutedProgram& routed);
// The same for what was compiled again.
std::string difference_between(const Model& model, const Model& compiled);

// Takes away numbers and digits as long as the model stays wrong. The more a run of the model
// costs, the fewer simpler inputs are tried.
CounterExample simplified(JudgedNetwork& network, std::vector<float> input, double c);

}  // namespace posattn
