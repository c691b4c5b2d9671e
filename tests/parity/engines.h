// The double reference and the fp32 engine behind one interface, so that every question is asked
// of both in the same words.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "posattn/model/blocks/reference_network.h"
#include "posattn/model/network.h"
#include "posattn/model/spec/parameters.h"

namespace posattn::parity {

// Samples of one length, in the engine's precision.
template <class T>
struct Samples {
  std::vector<T> inputs = {}, targets = {};
  int64_t samples = 0;
  int real_nodes = 0;
  std::vector<int32_t> tokens = {}, labels = {};
  std::vector<T> pairs = {};
  std::vector<int32_t> pair_classes = {};
  std::vector<T> hints = {};
  double hint_weight = 1;

  BatchOf<T> batch() const {
    return {inputs, targets, samples,      real_nodes, tokens, labels,
            {},     pairs,   pair_classes, {},         hints,  hint_weight};
  }
  Samples first() const {  // the first sample alone, without its answer
    const auto part = [&](const auto& all) {
      const auto count = static_cast<std::ptrdiff_t>(all.size()) / samples;
      return std::decay_t<decltype(all)>(all.begin(), all.begin() + count);
    };
    return {part(inputs), {}, 1, real_nodes, part(tokens), {}, part(pairs), part(pair_classes)};
  }
};

class ReferenceEngine {
 public:
  using Number = double;
  explicit ReferenceEngine(const ModelSpec& spec) : spec_(spec) {}

  std::vector<double> forward(const Parameters<double>& parameters, const Samples<double>& s) {
    return reference_forward(spec_, parameters, s.batch());
  }
  double gradient(const Parameters<double>& parameters, const Samples<double>& s,
                  std::span<const uint8_t> mask, Parameters<double>& gradient) {
    return reference_gradient(spec_, parameters, s.batch(), mask, gradient);
  }
  std::vector<double> attention(const Parameters<double>& parameters, const Samples<double>& s) {
    return reference_attention(spec_, parameters, s.first().batch());
  }

 private:
  ModelSpec spec_;
};

class FloatEngine {
 public:
  using Number = float;
  FloatEngine(const ModelSpec& spec, Path path)
      : spec_(spec), network_(spec, {.path = path, .threads = 2}) {}

  std::vector<float> forward(const Parameters<float>& parameters, const Samples<float>& s) {
    std::vector<float> outputs(s.samples * s.real_nodes * spec_.output_columns);
    network_.forward(parameters, s.batch(), outputs);
    return outputs;
  }
  double gradient(const Parameters<float>& parameters, const Samples<float>& s,
                  std::span<const uint8_t> mask, Parameters<float>& gradient) {
    return network_.gradient(parameters, s.batch(), mask, gradient);
  }
  std::vector<float> attention(const Parameters<float>& parameters, const Samples<float>& s) {
    return network_.attention(parameters, s.first().batch());
  }

 private:
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
