// Compiled programs as a NetworkEngine: forward only.
#include <algorithm>
#include <optional>

#include "posattn/base/error.h"
#include "posattn/model/network_engine.h"
#include "posattn/model/routed/routed_network.h"

namespace posattn::engine {
namespace {

class RoutedEngine : public NetworkEngine {
 public:
  RoutedEngine(const ModelSpec& spec, const NetworkOptions& options)
      : spec_(spec), threads_(std::max(1, options.threads)) {}

  void prepare(const Parameters<float>& parameters, int) override {
    network_.emplace(spec_, parameters);
  }
  void run(const Batch& batch, std::span<float> outputs) const override {
    network_->forward(batch.inputs.data(), batch.samples, outputs.data(), threads_,
                      batch.tokens.data());
  }
  double gradient(const Parameters<float>&, const Batch&, std::span<const uint8_t>,
                  Parameters<float>&) override {
    throw Error(ExitCode::configuration, "the gradient of a model whose attention is routed",
                "queries and keys to train", "compile the program with --dense");
  }
  std::vector<float> attention(const Parameters<float>& parameters, const Batch&) override {
    return routed_attention(spec_, parameters);
  }

 private:
  ModelSpec spec_;
  int threads_;
  std::optional<RoutedNetwork<float>> network_;
};

}  // namespace

std::unique_ptr<NetworkEngine> make_routed_engine(const ModelSpec& spec,
                                                  const NetworkOptions& options) {
  return std::make_unique<RoutedEngine>(spec, options);
}

}  // namespace posattn::engine
