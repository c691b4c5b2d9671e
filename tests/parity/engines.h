// The double reference and the fp32 engine behind one interface, so that every question is asked
// of both in the same words.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "posattn/model/network.h"
#include "posattn/model/parameters.h"
#include "posattn/model/reference_network.h"

namespace posattn::parity {

// Samples of one length, in the engine's precision.
template <class T>
struct Samples {
  std::vector<T> inputs, targets;
  int64_t samples = 0;
  int real_nodes = 0;
};

class ReferenceEngine {
 public:
  using Number = double;
  explicit ReferenceEngine(const ModelSpec& spec) : spec_(spec) {}

  std::vector<double> forward(const Parameters<double>& parameters, const Samples<double>& s) {
    return reference_forward(spec_, parameters, batch(s));
  }
  double gradient(const Parameters<double>& parameters, const Samples<double>& s,
                  std::span<const uint8_t> mask, Parameters<double>& gradient) {
    return reference_gradient(spec_, parameters, batch(s), mask, gradient);
  }
  std::vector<double> attention(const Parameters<double>& parameters, const Samples<double>& s) {
    ReferenceBatch first = batch(s);
    first.samples = 1;
    return reference_attention(spec_, parameters, first);
  }

 private:
  static ReferenceBatch batch(const Samples<double>& s) {
    return {s.inputs.data(), s.targets.data(), s.samples, s.real_nodes};
  }
  ModelSpec spec_;
};

class FloatEngine {
 public:
  using Number = float;
  FloatEngine(const ModelSpec& spec, Path path)
      : spec_(spec), network_(spec, {.path = path, .threads = 2}) {}

  std::vector<float> forward(const Parameters<float>& parameters, const Samples<float>& s) {
    std::vector<float> outputs(s.samples * s.real_nodes * spec_.output_columns);
    network_.forward(parameters, batch(s), outputs.data());
    return outputs;
  }
  double gradient(const Parameters<float>& parameters, const Samples<float>& s,
                  std::span<const uint8_t> mask, Parameters<float>& gradient) {
    return network_.gradient(parameters, batch(s), mask, gradient);
  }
  std::vector<float> attention(const Parameters<float>& parameters, const Samples<float>& s) {
    Batch first = batch(s);
    first.samples = 1;
    return network_.attention(parameters, first);
  }

 private:
  static Batch batch(const Samples<float>& s) {
    return {s.inputs.data(), s.targets.data(), s.samples, s.real_nodes};
  }
  ModelSpec spec_;
  Network network_;
};

// Calls `use` with the engine of this name.
template <class Use>
void with_engine(const std::string& name, const ModelSpec& spec, Use&& use) {
  if (name == "reference") return use(ReferenceEngine(spec));
  if (name == "plain") return use(FloatEngine(spec, Path::plain));
  if (name == "folded") return use(FloatEngine(spec, Path::folded));
  if (name == "automatic") return use(FloatEngine(spec, Path::automatic));
  throw std::runtime_error("unknown engine " + name);
}

}  // namespace posattn::parity
