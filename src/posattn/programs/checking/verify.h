// Whether a model computes what a program says: its outputs against the program's interpreter and
// against the task's exact answer, on random inputs of several scales and on hard ones
// (hard_inputs.h); and its weights against those that the compiler writes. Inputs can show that a
// model is wrong. That it is right rests on the weights being the compiler's.
#pragma once

#include <algorithm>

#include "posattn/model/file/model_file.h"
#include "posattn/programs/form/static_program.h"
#include "posattn/programs/messages/route_messages.h"

namespace posattn {

struct VerifyRequest {
  const Model* model = nullptr;
  const StaticProgram* program = nullptr;
  Routing routing = Routing::automatic;  // of its messages, as the model was compiled
  std::vector<double> scales = {1, 10, 1000};
  int64_t samples = 10000;  // random inputs per scale, and as many hard ones
  uint64_t seed = 0;
  int threads = 1;
  bool in_double = false;  // the network's arithmetic, instead of fp32; routed models only
  // Accepts other weights than the compiler's, on the evidence of the inputs alone.
  bool any_weights = false;
};

// Programs over whole numbers have one, with c = 1: their inputs do not scale.
struct ScaleVerification {
  double c = 1;
  int64_t samples = 0;       // random inputs
  int64_t hard = 0;          // hard inputs on which the program has a value
  int64_t mismatches = 0;    // inputs with an output outside its rounding bound
  double largest_error = 0;  // of an output, against the program's exact run
  double largest_bound = 0;  // what rounding allows at most
  // What rounding allows, as a part of the outputs' size on random inputs: the rms of an output's
  // bounds over the rms of its exact values, the largest of all outputs of all processors. An
  // output that is always zero is measured by the inputs' range.
  double bound_share = 0;
  // A bound above a hundredth of the outputs could hide an error. The comparison is written so that
  // NaN gives false.
  bool is_decided() const { return bound_share <= 0.01; }
  // On random inputs, against the task's answer; against the program's where it has none, and in
  // double, since the tasks' answers are fp32.
  double mse = 0;
  double seconds = 0;  // in the network, all else left out
};

// An input on which the model is wrong, made as simple as it could be: few numbers that are not
// zero, few digits.
struct CounterExample {
  double c = 1;
  std::vector<double> input, expected, found;
  std::vector<double> bounds;
  std::string against;  // "the program" or "task cumulative-sum"
};

struct Verification {
  std::vector<ScaleVerification> scales;
  // Hard inputs of all magnitudes on which the program has a value; they count only as right or
  // wrong.
  int64_t far = 0;
  bool whole = false;         // no input is a real number
  std::string other_weights;  // how the weights differ from the compiler's, or ""
  bool any_weights = false;   // such weights are accepted
  std::optional<CounterExample> counter_example;

  int64_t inputs() const;
  bool is_decided() const { return std::ranges::all_of(scales, &ScaleVerification::is_decided); }
  bool holds() const {
    return !counter_example && is_decided() && (any_weights || other_weights.empty());
  }
};

// Throws Error(data) where the model's shape is not the program's, a random input is one on which
// an operation has no value (see run_static), or the file says what compile() would not; and
// Error(configuration) for a dense model in double.
Verification verify(const VerifyRequest& request);

}  // namespace posattn
