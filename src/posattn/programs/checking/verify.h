// Whether a model computes what a program says: its outputs against the program's interpreter and
// against the task's exact answer, on random inputs of several scales.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "posattn/model/model_file.h"
#include "posattn/programs/form/static_program.h"
#include "posattn/programs/messages/routing.h"

namespace posattn {

struct VerifyRequest {
  const Model* model = nullptr;
  const StaticProgram* program = nullptr;
  Routing routing = Routing::automatic;  // of its messages, as the model was compiled
  std::vector<double> scales = {1, 10, 1000};
  int64_t samples = 10000;  // per scale
  uint64_t seed = 0;
  int threads = 1;
  bool in_double = false;  // the network's arithmetic, instead of fp32; routed models only
};

struct ScaleVerification {
  double c = 1;
  int64_t samples = 0;
  int64_t mismatches = 0;    // samples with an output outside its rounding bound
  double largest_error = 0;  // of an output, against the program's exact run
  double largest_bound = 0;  // what rounding allows at most
  // What rounding allows, as a part of the outputs' size: rms of the bounds over rms of the exact
  // outputs, the largest of the outputs' columns.
  double bound_share = 0;
  // A bound above a hundredth of the outputs would let pass what is not right.
  bool is_decided() const { return bound_share <= 0.01; }
  // Against the task's answer; against the program's where it has none, and in double, since the
  // tasks' answers are fp32.
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
  std::optional<CounterExample> counter_example;
  bool is_decided() const { return std::ranges::all_of(scales, &ScaleVerification::is_decided); }
  bool holds() const { return !counter_example && is_decided(); }
};

// Throws Error(data) where the model's shape is not the program's, or an input is one on which an
// operation has no value (see run_static); Error(configuration) for a dense model in double.
Verification verify(const VerifyRequest& request);

}  // namespace posattn
